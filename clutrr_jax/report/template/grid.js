// The page of a grid: a table or figure of the papers, measured and published.

const [PANEL, X, SERIES] = DATA.heads;
const ROWS = new Map([...DATA.rows, ...DATA.averages].map((row) =>
  [JSON.stringify([row[PANEL], row[X], row[SERIES]]), row]));
const rowOf = (...key) => ROWS.get(JSON.stringify(key));
const values = (head, rows) => [...new Set(rows.map((row) => row[head]))];
const XS = values(X, DATA.rows);
const NAMES = values(SERIES, DATA.rows);
// Averages over panels stand beside them.
const PANELS = [...values(PANEL, DATA.rows),
  ...values(PANEL, DATA.averages.filter((row) => XS.includes(row[X])))];
const PUBLISHED = DATA.rows.some((row) => row.published);

const accuracy = ({ mean, error }) => share(mean) + (error === null ? "" : ` ± ${share(error)}`);
const difference = (row) =>
  `${row.difference <= -0.005 ? "-" : "+"}${share(Math.abs(row.difference))}${row.apart ? DATA.mark : ""}`;

// What is known of a cell, line by line.
function told(row) {
  const { measured, published } = row;
  const said = [];
  if (measured) said.push(`measured ${accuracy(measured)}`);
  if (measured?.stories) {
    said.push(`95 % interval ${share(measured.low)} to ${share(measured.high)}`);
    said.push(`${many(measured.stories, "story", "stories")}, ${many(measured.replicas, "replica")}`);
  }
  if (published) said.push(`published ${accuracy(published)}`);
  if (measured && published) said.push(`difference ${difference(row)}`);
  return said;
}

// Averages have no interval: the area below them is drawn.
const pointOf = (row) => row?.measured && {
  value: row.measured.mean, low: row.measured.low ?? 0,
  high: row.measured.high ?? row.measured.mean, said: told(row),
};
const bare = (value, said) => ({ value, low: null, high: null, said });

function curves() {
  if (typeof XS[0] === "string") {
    $("curves").hidden = $("curves-link").hidden = true;
    return;
  }
  const plain = (label, i) =>
    ({ label, style: "plain", path: `line thin dash${i % 4}`, shape: null, on: true });
  const others = [...new Set(DATA.references.map(({ name }) => name))];
  const keys = [
    ...NAMES.map((label, i) => ({ label, ...look(i), on: true })),
    ...NAMES.map((name, i) =>
      ({ ...look(i), label: `${name}, published`, path: "line thin dash1", hollow: true, on: true })),
    ...others.map((name, i) => plain(name, i + 1)),
    plain("ceiling", 0),
  ];
  const points = {
    ceiling: (panel, x) => {
      const measured = NAMES.map((name) => rowOf(panel, x, name)?.measured).find(Boolean);
      const said = (value) => [`${share(value)}: what the ambiguity of the labels allows`];
      return measured?.ceiling && bare(measured.ceiling, said(measured.ceiling));
    },
  };
  for (const name of NAMES) {
    points[name] = (panel, x) => pointOf(rowOf(panel, x, name));
    points[`${name}, published`] = (panel, x) => {
      const row = rowOf(panel, x, name);
      return row?.published && bare(row.published.mean, told(row));
    };
  }
  for (const name of others) {
    points[name] = (panel, x) => {
      const one = DATA.references.find((other) => other.panel === panel && other.name === name);
      const value = one?.shares[x];
      return value === undefined ? null : bare(value, [`accuracy ${share(value)}`]);
    };
  }
  const columns = XS.map((x) => ({ tick: x, label: `${X} = ${x}`, group: 0 }));
  const used = new Set();
  const draws = PANELS.map((panel) => {
    const lines = keys
      .map((key) => ({ key, points: XS.map((x) => points[key.label](panel, x)) }))
      .filter((line) => line.points.some(Boolean));
    lines.forEach((line) => used.add(line.key));
    const name = `${PANEL}: ${panel}`;
    const node = el("div", { class: "chart", tabindex: 0, role: "application", "aria-label": name });
    $("charts").append(el("div", {}, el("h3", {}, name), node));
    return chart(node, { columns, lines, title: X });
  });
  legend($("legend"), keys.filter((key) => used.has(key)), draws);
}

const MEANS = {
  measured: "Darker: more accurate.",
  published: "Darker: more accurate.",
  difference: `Measured less published: blue above, brown below, darkest from .50. ${DATA.mark}: the 95 % `
    + "intervals do not meet.",
};

function heatCell(row, shown) {
  const title = row && told(row).join(", ");
  if (shown !== "difference") {
    const cell = row?.[shown];
    return cell ? heat(cell.mean, share(cell.mean), title) : el("td", { class: "heat" });
  }
  if (row?.difference === undefined) return el("td", { class: "heat" });
  const cell = heat(Math.min(1, 2 * Math.abs(row.difference)), difference(row), title);
  if (row.difference < 0) cell.classList.add("below");
  return cell;
}

function heatMaps() {
  $("shown-line").hidden = !PUBLISHED;

  function draw() {
    const shown = $("shown").value;
    $("shown-means").textContent = MEANS[shown];
    $("heat-body").replaceChildren(...NAMES.map((name) => el("div", { class: "scroll" },
      el("h3", {}, name),
      el("table", {},
        el("thead", {}, el("tr", {}, el("th", {}, `${PANEL} ↓ ${X} →`),
          ...XS.map((x) => el("th", { scope: "col" }, String(x))))),
        el("tbody", {}, ...PANELS.map((panel) => el("tr", {},
          el("th", { scope: "row" }, String(panel)),
          ...XS.map((x) => heatCell(rowOf(panel, x, name), shown)))))))));
  }
  $("shown").addEventListener("change", draw);
  draw();
}

function claims() {
  const classes = { "borne out": "right mark-right", "not borne out": "wrong mark-wrong" };
  for (const [question, verdicts] of Object.entries(DATA.claims)) {
    const rows = Object.entries(verdicts).flatMap(([verdict, some]) => some.map((claim) =>
      el("tr", {}, el("td", { class: classes[verdict] ?? "quiet" }, verdict),
        el("td", { class: "said" }, claim))));
    $("claims-body").append(el("h3", {}, question), el("table", {}, el("tbody", {}, ...rows)));
  }
}

// A row for each training, a column for each model; of several seeds each by its number.
function runs() {
  const parts = DATA.cells.map((cell) => {
    const [training, model, seed] = cell.name.split("/");
    return { ...cell, training, model, seed };
  });
  const trainings = [...new Set(parts.map((cell) => cell.training))];
  const models = [...new Set(parts.map((cell) => cell.model))];
  const classes = { finished: "mark-right", failed: "wrong mark-wrong", "not run": "quiet mark-none" };
  const shown = ({ name, state, seed }) => {
    const attributes = { class: classes[state], "aria-label": `${name}: ${state}`, title: state };
    if (state !== "finished") return el("span", { ...attributes, role: "img" }, seed ?? state);
    const href = `${encodeURI(name)}/report.html`;
    return el("a", { ...attributes, href }, seed ?? state);
  };
  $("runs-body").append(el("table", { class: "cells" },
    el("thead", {}, el("tr", {}, el("th", {}, "training"),
      ...models.map((model) => el("th", { scope: "col" }, model)))),
    el("tbody", {}, ...trainings.map((training) => el("tr", {},
      el("th", { scope: "row" }, training),
      ...models.map((model) => el("td", {}, ...parts
        .filter((cell) => cell.training === training && cell.model === model)
        .flatMap((cell) => [shown(cell), " "]))))))));
  $("failed").append(...DATA.cells.filter((cell) => cell.error).map((cell) =>
    el("li", {}, el("strong", {}, cell.name), `: ${cell.error}`)));
}

$("title").textContent = DATA.title;
$("facts").textContent = DATA.facts;
$("table-legend").textContent = DATA.legend;
curves();
heatMaps();
claims();
table();
runs();
