// The curves of a run: the models, then what needs no training, and the ceiling.

function pointOf(row) {
  const end = (sign) => (row.stderr === null ? null : row.accuracy + sign * row.stderr);
  const said = [`accuracy ${share(row.accuracy)}${row.stderr === null ? "" : ` ± ${share(row.stderr)}`}`,
    `95 % interval ${share(row.low)} to ${share(row.high)}`,
    `${many(row.count, "story", "stories")}, ${many(row.replicas, "replica")}`];
  return { value: row.accuracy, low: end(-1), high: end(1), said };
}

function linesOf() {
  const rows = new Map();
  for (const row of DATA.rows) {
    if (!rows.has(row.model)) rows.set(row.model, []);
    rows.get(row.model).push(row);
  }
  const lines = MODELS.map((name, i) =>
    ({ key: { label: name, ...look(i), on: true }, points: rows.get(name).map(pointOf) }));
  const plain = [...rows.keys()].filter((name) => !MODELS.includes(name));
  const limit = rows.get(plain[0]).map(({ ceiling }) => ({
    value: ceiling, low: null, high: null,
    said: [`${share(ceiling)}: what the ambiguity of the labels allows`],
  }));
  for (const [i, label] of [...plain, "ceiling"].entries()) {
    // The provers with rules run along the top: shown when asked for.
    const on = label === "ceiling" || label === "majority label";
    const key = { label, style: "plain", path: `line thin dash${i % 4}`, shape: null, on };
    lines.push({ key, points: label === "ceiling" ? limit : rows.get(label).map(pointOf) });
  }
  return lines;
}

function curves() {
  if (!DATA.oneNoise) $("curves-h").textContent = "Accuracy by test";
  const columns = DATA.tests.map(({ name, label, noise, k }) =>
    ({ tick: DATA.oneNoise ? k : name, label, group: noise }));
  const title = DATA.oneNoise ? "clause length k" : "test T.K: noise T, clause length K";
  const lines = linesOf();
  const draw = chart($("chart"), { columns, lines, title });
  legend($("legend"), lines.map((line) => line.key), [draw]);
}
