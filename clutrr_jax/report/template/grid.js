// The page of a grid: a table or figure of a paper, measured and published. A row of the results
// belongs to a panel, an x value and a series.

const [PANEL, X, SERIES] = DATA.columns;
const ROWS = new Map([...DATA.rows, ...DATA.averages].map((row) =>
  [JSON.stringify([row[PANEL], row[X], row[SERIES]]), row]));
const rowOf = (...key) => ROWS.get(JSON.stringify(key));
const values = (column, rows) => unique(rows.map((row) => row[column]));
const XS = values(X, DATA.rows);
const NAMES = values(SERIES, DATA.rows);
// Averages over panels have a panel of their own.
const PANELS = [...values(PANEL, DATA.rows),
  ...values(PANEL, DATA.averages.filter((row) => XS.includes(row[X])))];
const PUBLISHED = DATA.rows.some((row) => row.published);

const accuracy = ({ mean, error }) =>
  fraction(mean) + (error === null ? "" : ` ± ${fraction(error)}`);
const difference = (row) =>
  `${row.difference <= -0.005 ? "-" : "+"}${fraction(Math.abs(row.difference))}${row.intervals_disjoint ? DATA.mark : ""}`;

// Lines of text about a row, for tooltips.
function details(row) {
  const { measured, published } = row;
  const lines = [];
  if (measured) lines.push(`measured ${accuracy(measured)}`);
  if (measured?.stories) {
    lines.push(`95 % interval ${fraction(measured.low)} to ${fraction(measured.high)}`);
    lines.push(`${plural(measured.stories, "story", "stories")}, ${plural(measured.replicas, "replica")}`);
  }
  if (published) lines.push(`published ${accuracy(published)}`);
  if (measured && published) lines.push(`difference ${difference(row)}`);
  return lines;
}

// Averages have no interval.
const pointOf = (row) => row?.measured && {
  value: row.measured.mean, low: row.measured.low ?? null, high: row.measured.high ?? null,
  details: details(row),
};

// Style of the reference with the given index: that of its model, if the model was run.
function referenceKey({ name, series, shown }, i) {
  const own = NAMES.indexOf(series);
  const style = seriesStyle(own < 0 ? NAMES.length + i : own);
  return { ...style, label: name, path: "line thin dash2", hollow: true, on: shown };
}

function showCurves() {
  if (typeof XS[0] === "string") {
    $("curves").hidden = $("curves-link").hidden = true;
    return;
  }
  $("curves-legend").textContent = `Test accuracy against ${X}, with one chart for each value of `
    + `“${PANEL}”.`;
  const names = values("name", DATA.references);
  const referenceKeys = names.map((name, i) =>
    referenceKey(DATA.references.find((reference) => reference.name === name), i));
  const keys = [
    ...NAMES.map((label, i) => ({ label, ...seriesStyle(i), on: true })),
    ...NAMES.map((name, i) =>
      ({ ...seriesStyle(i), label: `${name}, published`, path: "line thin dash1", hollow: true, on: true })),
    plainKey("ceiling", 0, true),
    ...referenceKeys,
  ];
  const points = {
    ceiling: (panel, x) => {
      const measured = NAMES.map((name) => rowOf(panel, x, name)?.measured).find(Boolean);
      return measured?.ceiling && ceilingPoint(measured.ceiling);
    },
  };
  for (const name of NAMES) {
    points[name] = (panel, x) => pointOf(rowOf(panel, x, name));
    points[`${name}, published`] = (panel, x) => {
      const row = rowOf(panel, x, name);
      return row?.published && pointWithoutBand(row.published.mean, details(row));
    };
  }
  for (const name of names) {
    points[name] = (panel, x) => {
      const reference = DATA.references.find((other) => other.panel === panel && other.name === name);
      const cell = reference?.values[x];
      return cell && pointWithoutBand(cell.mean, [`published ${accuracy(cell)}`, reference.source]);
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
  const shownIn = (node, own) => legend(node, own.filter((key) => used.has(key)), draws);
  shownIn($("legend"), keys.filter((key) => !referenceKeys.includes(key)));
  shownIn($("references-legend"), referenceKeys);
  $("references").hidden = !names.length;
  $("markers").hidden = !names.length && !PUBLISHED;
}

const LEGENDS = {
  measured: "Darker cells are more accurate.",
  published: "Darker cells are more accurate.",
  difference: "Measured minus published accuracy: blue if higher, brown if lower, darkest from .50. "
    + `${DATA.mark}: the 95 % intervals (over test stories and replicas) do not overlap.`,
};

function cellOf(row, shown) {
  const title = row && details(row).join(", ");
  if (shown !== "difference") {
    const cell = row?.[shown];
    return cell ? heatCell(cell.mean, fraction(cell.mean), title) : el("td", { class: "heat" });
  }
  if (row?.difference === undefined) return el("td", { class: "heat" });
  const cell = heatCell(Math.min(1, 2 * Math.abs(row.difference)), difference(row), title);
  if (row.difference < 0) cell.classList.add("below");
  return cell;
}

function showHeatMaps() {
  $("shown-line").hidden = !PUBLISHED;

  function draw() {
    const shown = $("shown").value;
    $("shown-legend").textContent = LEGENDS[shown];
    const columns = [`${PANEL} ↓ ${X} →`, ...XS.map(String)];
    $("heat-body").replaceChildren(...NAMES.map((name) => {
      const rows = PANELS.map((panel) => el("tr", {}, rowHeader(String(panel)),
        ...XS.map((x) => cellOf(rowOf(panel, x, name), shown))));
      return el("div", { class: "scroll" }, el("h3", {}, name), makeTable(columns, rows));
    }));
  }
  $("shown").addEventListener("change", draw);
  draw();
}

function showSources() {
  $("sources").hidden = !DATA.sources.length;
  $("sources-body").append(...DATA.sources.map((source) => el("li", {}, source)));
}

function showClaims() {
  const styles = { supported: "right mark-right", "not supported": "wrong mark-wrong" };
  $("claims").hidden = $("claims-link").hidden = !Object.keys(DATA.claims).length;
  for (const [question, verdicts] of Object.entries(DATA.claims)) {
    const rows = Object.entries(verdicts).flatMap(([verdict, claims]) => claims.map((claim) =>
      el("tr", {}, el("td", { class: styles[verdict] ?? "note" }, verdict),
        el("td", { class: "claim" }, claim))));
    $("claims-body").append(el("h3", {}, question), el("table", {}, el("tbody", {}, ...rows)));
  }
}

// A row for each training set and a column for each model. The name of a run is
// TRAINING/MODEL or TRAINING/MODEL/SEED.
function showRuns() {
  const runs = DATA.cells.map((cell) => {
    const [training, model, seed] = cell.name.split("/");
    return { ...cell, training, model, seed };
  });
  const models = values("model", runs);
  const styles = { finished: "mark-right", failed: "wrong mark-wrong", "not run": "note mark-none" };
  const link = ({ name, state, seed }) => {
    const attributes = { class: styles[state], "aria-label": `${name}: ${state}`, title: state };
    if (state !== "finished") return el("span", { ...attributes, role: "img" }, seed ?? state);
    return el("a", { ...attributes, href: `${encodeURI(name)}/report.html` }, seed ?? state);
  };
  const rows = values("training", runs).map((training) => el("tr", {}, rowHeader(training),
    ...models.map((model) => el("td", {}, ...runs
      .filter((run) => run.training === training && run.model === model)
      .flatMap((run) => [link(run), " "])))));
  $("runs-body").append(makeTable(["training set", ...models], rows, { class: "runs" }));
  $("failed").append(...DATA.cells.filter((cell) => cell.error).map((cell) =>
    el("li", {}, el("strong", {}, cell.name), `: ${cell.error}`)));
}

$("title").textContent = DATA.title;
$("summary").textContent = DATA.summary;
$("table-legend").textContent = DATA.legend;
showCurves();
showHeatMaps();
showClaims();
showTable();
showSources();
showRuns();
