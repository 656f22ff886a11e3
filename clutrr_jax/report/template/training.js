// Training curves: loss and dev accuracy of the models of the data set against the epoch.

function showTraining() {
  const models = MODELS.filter((model) => SET.models[model].curves);
  if (!models.length) return $("training").remove();
  const curves = (model) => SET.models[model].curves;
  const xs = unique(models.flatMap((model) => curves(model).map(({ epoch }) => epoch)));
  xs.sort((a, b) => a - b);
  const keys = models.map((model) => ({
    ...seriesStyle(MODEL_SERIES.findIndex(({ name }) => name === model)), shape: null, label: model, on: true,
  }));
  const draws = ["loss", "dev accuracy"].map((name) => {
    const lines = keys.map((key) => {
      const at = new Map(curves(key.label).map((point) => [point.epoch, point[name]]));
      return { key, points: xs.map((x) => Number.isFinite(at.get(x))
        && { value: at.get(x), details: [`${name} ${fraction(at.get(x))}`] }) };
    }).filter((line) => line.points.some(Boolean));
    const values = lines.flatMap(({ points }) => points.filter(Boolean).map(({ value }) => value));
    const most = name === "loss" ? Math.ceil(Math.max(...values)) : 1;
    const node = el("div", { class: "chart", tabindex: 0, role: "application", "aria-label": name });
    $("training-charts").append(el("div", {}, el("h3", {}, name), node));
    return chart(node, { xs, lines, title: "epoch", measure: name, most, linear: true });
  });
  legend($("training-legend"), keys, draws);
}
