// The accuracy chart of a run: models, baselines and the ceiling.

function pointOf(row) {
  const error = row.stderr === null ? "" : ` ± ${fraction(row.stderr)} (standard error)`;
  return {
    value: row.accuracy,
    low: row.stderr === null ? null : row.accuracy - row.stderr,
    high: row.stderr === null ? null : row.accuracy + row.stderr,
    details: [`accuracy ${fraction(row.accuracy)}${error}`,
      `95 % interval ${fraction(row.low)} to ${fraction(row.high)}`,
      `${plural(row.count, "story", "stories")}, ${plural(row.replicas, "replica")}`],
  };
}

function curveLines() {
  const rowsOf = (name) => DATA.rows.filter((row) => row.model === name);
  const others = unique(DATA.rows.map((row) => row.model)).filter((name) => !MODELS.includes(name));
  // Baselines that use rules are often close to 1.00, so they are hidden at first.
  const initiallyShown = (name) => !["given rules", "induced rules"].includes(name);
  return [
    ...MODELS.map((label, i) =>
      ({ key: { label, ...seriesStyle(i), on: true }, points: rowsOf(label).map(pointOf) })),
    ...others.map((label, i) =>
      ({ key: plainKey(label, i, initiallyShown(label)), points: rowsOf(label).map(pointOf) })),
    { key: plainKey("ceiling", others.length, true),
      points: rowsOf(others[0]).map((row) => ceilingPoint(row.ceiling)) },
  ];
}

function showCurves() {
  if (!ONE_NOISE_TYPE) $("curves-h").textContent = "Accuracy by test";
  const columns = DATA.tests.map(({ name, label, noise, k }) =>
    ({ tick: ONE_NOISE_TYPE ? k : name, label, group: noise }));
  const types = Object.entries(DATA.noiseTypes).map(([type, name]) => `${type} ${name}`);
  const title = ONE_NOISE_TYPE ? "clause length k"
    : `test T.K: clause length K, noise type T (${types.join(", ")})`;
  const lines = curveLines();
  const draw = chart($("chart"), { columns, lines, title });
  legend($("legend"), lines.map((line) => line.key), [draw]);
}
