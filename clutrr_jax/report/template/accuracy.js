// The accuracies of the experiment: curves, heat maps, claims and table, and the runs behind them.
// A row of the results belongs to a panel, an x value and a series.

const [PANEL, X, SERIES] = DATA.columns;
const byKey = (rows) => {
  const found = new Map(rows.map((row) => [JSON.stringify([row[PANEL], row[X], row[SERIES]]), row]));
  return (...key) => found.get(JSON.stringify(key));
};
const MEASURED = DATA.rows.filter((row) => row.kind !== "published");
const PAPERS = DATA.rows.filter((row) => row.kind === "published");
const rowOf = byKey(MEASURED);
const paperOf = byKey(PAPERS);
const XS = unique(MEASURED.filter((row) => !row.average).map((row) => row[X]));
const HAS_CURVES = XS.length > 0 && XS.every(Number.isFinite);
if (HAS_CURVES) XS.sort((a, b) => a - b);
// Averages over panels have a panel of their own.
const PANELS = unique(MEASURED.filter((row) => XS.includes(row[X])).map((row) => row[PANEL]));
const ALL_SERIES = [...new Map(MEASURED.map((row) => [row[SERIES], row.kind]))].map(([name, kind]) =>
  ({ name, kind, shown: !DATA.hidden.includes(name) && !DATA.hiddenKinds.includes(kind) }));
const MODEL_SERIES = ALL_SERIES.filter(({ kind }) => kind !== "baseline");
const BASELINE_SERIES = ALL_SERIES.filter(({ kind }) => kind === "baseline");
const IN_GRID = PAPERS.filter((row) => !row.source);
const REFERENCES = PAPERS.filter((row) => row.source);

const withError = (mean, error) =>
  fraction(mean) + (Number.isFinite(error) ? ` ± ${fraction(error)}` : "");
const publishedText = ({ accuracy, stderr }) => `published ${withError(accuracy, stderr)}`;
const paperFor = (row) => paperOf(row[PANEL], row[X], row[SERIES]);
const difference = (row) => (Number.isFinite(row.accuracy) && paperFor(row)
  ? row.accuracy - paperFor(row).accuracy : null);
function differenceText(row) {
  const [value, { low, high }] = [difference(row), paperFor(row)];
  const disjoint = Number.isFinite(row.low) && (row.low > high || row.high < low);
  return `${value <= -0.005 ? "-" : "+"}${fraction(Math.abs(value))}${disjoint ? DATA.mark : ""}`;
}

// Lines of text about a row, for tooltips. Averages have no interval and no count.
function details(row) {
  const { accuracy, stderr, low, high, clauses, count, replicas, seeds, kind } = row;
  const lines = [];
  if (Number.isFinite(accuracy)) lines.push(`measured ${withError(accuracy, stderr)}`);
  if (Number.isFinite(low)) {
    const about = seeds === null && kind !== "baseline" ? " (this training)" : "";
    lines.push(`95 % interval ${fraction(low)} to ${fraction(high)}${about}`);
  }
  if (Number.isFinite(count)) {
    const sizes = [plural(count, "story", "stories"), plural(replicas, "replica")];
    lines.push([...(clauses ? [plural(clauses, "clause")] : []), ...sizes].join(", "));
  }
  if (paperFor(row)) lines.push(publishedText(paperFor(row)));
  if (difference(row) !== null) lines.push(`difference ${differenceText(row)}`);
  return lines;
}

// Lines of the charts, without those of references: { key, point(panel, x) }.
function ownLines() {
  const measured = (key) => ({
    key,
    point: (panel, x) => {
      const row = rowOf(panel, x, key.label);
      return Number.isFinite(row?.accuracy)
        && {
          value: row.accuracy, low: row.low, high: row.high, details: details(row),
          replicas: row.replicas > 1 ? row.accuracies : [],
        };
    },
  });
  const published = (key) => ({
    key: { ...key, label: `${key.label}, published`, path: "line thin dash1", hollow: true },
    point: (panel, x) => {
      const [row, paper] = [rowOf(panel, x, key.label), paperOf(panel, x, key.label)];
      return row && paper && { value: paper.accuracy, details: details(row) };
    },
  });
  const models = MODEL_SERIES.map(({ name, shown }, i) => ({ ...seriesStyle(i), label: name, on: shown }));
  const baselines = BASELINE_SERIES.map(({ name, shown }, i) => plainKey(name, i, shown));
  return [...models.map(measured), ...models.map(published), ...baselines.map(measured)];
}

// A reference has the style of its model, if the model was run.
function referenceLines() {
  return [...Map.groupBy(REFERENCES, ({ name }) => name)].map(([label, [{ of, shown }]], i) => {
    const own = MODEL_SERIES.findIndex(({ name }) => name === of);
    const style = seriesStyle(own < 0 ? MODEL_SERIES.length + i : own);
    return {
      key: { ...style, label, path: "line thin dash2", hollow: true, on: shown },
      point: (panel, x) => {
        const row = paperOf(panel, x, label);
        return row && { value: row.accuracy, details: [publishedText(row), row.source] };
      },
    };
  });
}

function showCurves() {
  if (!HAS_CURVES) return $("curves").remove();
  const [own, references] = [ownLines(), referenceLines()];
  const used = new Set();
  const draws = PANELS.map((panel) => {
    const lines = [...own, ...references]
      .map(({ key, point }) => ({ key, points: XS.map((x) => point(panel, x)) }))
      .filter((line) => line.points.some(Boolean));
    lines.forEach((line) => used.add(line.key));
    const name = `${PANEL}: ${panel}`;
    const node = el("div", { class: "chart", tabindex: 0, role: "application", "aria-label": name });
    $("charts").append(el("div", {}, el("h3", {}, name), node));
    return chart(node, { xs: XS, lines, title: X });
  });
  const keys = (lines) => lines.map((line) => line.key).filter((key) => used.has(key));
  legend($("legend"), keys(own), draws);
  legend($("references-legend"), keys(references), draws);
  $("references").hidden = !references.length;
  $("markers").hidden = !PAPERS.length;
}

// Choices of the heat maps: name, explanation and value of a row.
const MAPS = {
  measured: ["measured accuracy", "Darker cells are more accurate.", (row) => row.accuracy],
  published: ["published accuracy", "Darker cells are more accurate.", (row) => paperFor(row)?.accuracy],
  difference: ["difference", "Measured minus published accuracy: blue if higher, brown if lower, darkest "
    + `from .50. ${DATA.mark}: the 95 % intervals (over clauses and seeds) do not overlap.`,
  difference],
};

function showHeatMaps() {
  if (PANELS.length < 2) return $("heat").remove();
  $("shown-line").hidden = !IN_GRID.length;

  function cell(row, choice) {
    const value = row && MAPS[choice][2](row);
    if (!Number.isFinite(value)) return el("td", { class: "heat" });
    const title = details(row).join(", ");
    if (choice !== "difference") return heatCell(value, fraction(value), title);
    const found = heatCell(Math.min(1, 2 * Math.abs(value)), differenceText(row), title);
    if (value < 0) found.classList.add("below");
    return found;
  }

  function draw() {
    const choice = $("shown").value;
    $("shown-legend").textContent = MAPS[choice][1];
    const columns = [`${PANEL} ↓ ${X} →`, ...XS.map(String)];
    $("heat-body").replaceChildren(...ALL_SERIES.map(({ name }) => {
      const rows = PANELS.map((panel) =>
        tableRow(String(panel), XS.map((x) => cell(rowOf(panel, x, name), choice))));
      return el("div", { class: "scroll" }, el("h3", {}, name), makeTable(columns, rows));
    }));
  }
  fillSelect("shown", Object.entries(MAPS).map(([choice, [name]]) => [choice, name]), draw);
  draw();
}

function showClaims() {
  if (!Object.keys(DATA.claims).length) return $("claims").remove();
  const styles = { supported: "right mark-right", "not supported": "wrong mark-wrong" };
  for (const [question, verdicts] of Object.entries(DATA.claims)) {
    const rows = Object.entries(verdicts).flatMap(([verdict, claims]) => claims.map((claim) =>
      el("tr", {}, el("td", { class: styles[verdict] ?? "note" }, verdict), el("td", {}, claim))));
    $("claims-body").append(el("h3", {}, question),
      el("table", { class: "claims texts" }, el("tbody", {}, ...rows)));
  }
}

// Lines that say more about the one above stay below it; the first line of each group of lines with
// the same name has a rule above. Every metric has a table.
function showTable() {
  const shown = () => DATA.tables[Number($("metric").value)];
  function draw() {
    const { columns, lines, about } = shown();
    const [groups, last] = [[], []];
    for (const { cells, kind, part } of lines) {
      const line = Object.assign([...cells], { part });
      if (part) groups.at(-1).push(line);
      else (kind === "test" && PANELS.length === 1 ? last : groups).push([line]);
    }
    sortableTable("table-body", columns, groups, (line, before) =>
      tableRow(line[0], line.slice(1).map(withInterval), {
        class: line.part ? "secondary" : line[0] === before?.[0] ? null : "first",
      }), { last });
    $("table-legend").textContent = about;
  }
  fillSelect("metric", DATA.tables.map(({ metric }, i) => [String(i), metric]), draw);
  $("metric-line").hidden = DATA.tables.length < 2;
  draw();
  showCopies("table-copies", () => shown().copies);
  $("baselines").hidden = !BASELINE_SERIES.length;
  $("sources").hidden = !DATA.sources.length;
  $("sources-body").append(...DATA.sources.map((source) => el("li", {}, source)));

  const [names, ...settings] = DATA.settings;
  $("settings").hidden = !settings.length;
  $("settings-body").append(makeTable(names, settings.map(([model, ...cells]) =>
    tableRow(model, [...cells.slice(0, -1), el("td", { class: "wrap" }, cells.at(-1))]))));
}

// An accuracy with its interval, or a difference with its p-value, in parentheses: small, below it.
function withInterval(cell) {
  const [, value, interval] = cell.match(/^([-+]?[\d.]+\*?) (\([^()]*\))$/) ?? [];
  return value ? el("td", {}, value, el("span", { class: "interval" }, ` ${interval}`)) : cell;
}

// Buttons that copy a table, whose forms `copies` returns. A handler of the event needs no
// permission, on any address.
function showCopies(id, copies) {
  const copied = el("span", { class: "note", role: "status" });
  $(id).append(...["LaTeX", "Markdown", "CSV"].map((form) => {
    const onclick = () => {
      document.addEventListener("copy", (event) => {
        event.clipboardData.setData("text/plain", copies()[form]);
        event.preventDefault();
      }, { once: true });
      copied.textContent = document.execCommand("copy") ? `Copied as ${form}.` : "Not copied.";
    };
    return el("button", { type: "button", onclick }, `Copy as ${form}`);
  }), copied);
}

// Paired tests of the selected model against each other one.
function showCompared() {
  const models = Object.keys(DATA.paired);
  if (!models.length) return $("compared").remove();
  $("compared-legend").textContent = DATA.pairedLegend;
  const shown = () => DATA.paired[$("compared-model").value];

  function draw() {
    const [[, ...columns], ...lines] = shown().table;
    $("compared-body").replaceChildren(makeTable(columns,
      lines.map(([, other, ...cells]) => tableRow(other, cells.map(withInterval)))));
  }
  fillSelect("compared-model", models, draw);
  draw();
  showCopies("compared-copies", () => shown().copies);
}

// A row for each training and a column for each model. The data set of a run is TRAINING or
// TRAINING/SEED.
function showRuns() {
  const models = unique(DATA.runs.map((run) => run.model));
  const allFinished = DATA.runs.every((run) => run.state === "finished");
  if (allFinished && models.length === DATA.runs.length) return $("runs").remove();
  const styles = { finished: "mark-right", failed: "wrong mark-wrong", "not run": "note mark-none" };
  const mark = ({ name, dataset, state }) => el("span", {
    class: styles[state], role: "img", "aria-label": `${name}: ${state}`, title: state,
  }, dataset.split("/")[1] ?? state);
  const trainings = Map.groupBy(DATA.runs, (run) => run.dataset.split("/")[0]);
  const rows = [...trainings].map(([training, runs]) => tableRow(training, models.map((model) =>
    el("td", {}, ...runs.filter((run) => run.model === model).flatMap((run) => [mark(run), " "])))));
  $("runs-body").append(makeTable(["data set", ...models], rows, { class: "runs texts" }));
  $("failed").append(...DATA.runs.filter((run) => run.error).map((run) =>
    el("li", {}, el("strong", {}, run.name), `: ${run.error}`)));
}
