// Settings of the models, accuracy by noise type, the confusion matrix, and accuracy by story group.

function showSettings() {
  const [columns, ...lines] = DATA.settings;
  const rows = lines.map(([model, ...cells]) => el("tr", {}, rowHeader(model),
    ...cells.map((cell, i) => el("td", i < cells.length - 1 ? {} : { class: "wrap" }, cell))));
  $("settings-body").replaceChildren(makeTable(columns, rows));
}

function showNoise() {
  if (ONE_NOISE_TYPE) {
    $("noise").hidden = $("noise-link").hidden = true;
    return;
  }
  const types = unique(DATA.tests.map((test) => test.noise));
  const lengths = unique(DATA.tests.map((test) => test.k)).sort((a, b) => a - b);
  fillSelect($("noise-k"), [["", "all"], ...lengths.map((k) => [String(k), `k=${k}`])]);

  function draw() {
    const k = $("noise-k").value;
    const cell = (model, type) => {
      const tests = DATA.tests.filter((t) => t.noise === type && (!k || String(t.k) === k));
      const rows = DATA.rows.filter((row) => row.model === model
        && tests.some((test) => test.name === row.task));
      if (!rows.length) return el("td", {});
      const count = sum(rows.map((row) => row.count));
      const mean = sum(rows.map((row) => row.accuracy * row.count)) / count;
      return heatCell(mean, fraction(mean), plural(count, "story", "stories"));
    };
    const rows = unique(DATA.rows.map((row) => row.model)).map((model) =>
      el("tr", {}, rowHeader(model), ...types.map((type) => cell(model, type))));
    const columns = ["model", ...types.map((type) => DATA.noiseTypes[type])];
    $("noise-body").replaceChildren(makeTable(columns, rows));
  }
  $("noise-k").addEventListener("change", draw);
  draw();
}

function showConfusion(browse) {
  fillSelect($("confusion-model"), MODELS.map((name) => [name, name]));
  fillSelect($("confusion-test"), TEST_OPTIONS);

  function draw() {
    const [model, test] = [$("confusion-model").value, $("confusion-test").value];
    const counts = DATA.relations.map(() => new Array(DATA.relations.length).fill(0));
    for (const story of storiesIn(test)) {
      for (const relation of predictions(model, story)) counts[target(story)][relation] += 1;
    }
    const labels = DATA.relationOrder.filter((r) => sum(counts[r]));
    const predicted = DATA.relationOrder.filter((r) => sum(counts[r]) || counts.some((row) => row[r]));
    const cell = (label, prediction) => {
      const [count, all] = [counts[label][prediction], sum(counts[label])];
      if (!count) return el("td", { class: "heat" });
      const title = `${relationName(label)} predicted as ${relationName(prediction)}: ${count} of ${all}`;
      const onclick = () =>
        browse({ model, test, target: String(label), prediction: String(prediction) });
      const text = count / all < 0.005 ? "<1" : String(Math.round((100 * count) / all));
      const button = el("button", { type: "button", onclick, "aria-label": title }, text);
      return heatCell(count / all, button, title);
    };
    const rows = labels.map((label) => el("tr", {}, rowHeader(relationName(label)),
      ...predicted.map((prediction) => cell(label, prediction)),
      el("td", {}, sum(counts[label]).toLocaleString("en"))));
    const columns = [...predicted.map(relationName), "predictions"];
    $("confusion-body").replaceChildren(makeTable(
      ["label ↓ predicted →", ...columns.map((name) => el("span", {}, name))],
      rows, { class: "matrix" }));
  }
  $("confusion-model").addEventListener("change", draw);
  $("confusion-test").addEventListener("change", draw);
  draw();
}

function showGroups(browse) {
  const KEYS = {
    clause: (story) => STORIES.clause[story],
    people: peopleCount,
    label: (story) => relationName(target(story)),
  };
  fillSelect($("group-test"), TEST_OPTIONS);

  function draw() {
    const [by, test] = [$("group-by").value, $("group-test").value];
    const accuracy = (model, stories) => sum(stories.map((story) => {
      const { correct, replicas } = summaries(model)[story];
      return correct / replicas;
    })) / stories.length;
    const lines = [...Map.groupBy(storiesIn(test), KEYS[by])].map(([name, stories]) =>
      [String(name), String(stories.length), ...MODELS.map((m) => fraction(accuracy(m, stories)))]);
    lines.sort((a, b) => b[1] - a[1]);
    const label = (name) => (by !== "clause" ? name : el("button",
      { type: "button", class: "link", onclick: () => browse({ search: name, test }) }, name));
    const columns = [$("group-by").selectedOptions[0].text, "stories", ...MODELS];
    sortableTable($("groups-body"), columns, lines.map((line) => [line]), ([name, count, ...cells]) =>
      el("tr", {}, el("th", { scope: "row", class: "wrap" }, label(name)), el("td", {}, count),
        ...cells.map((cell) => heatCell(Number(cell), cell))), { most: 20 });
  }
  for (const id of ["group-by", "group-test"]) $(id).addEventListener("change", draw);
  draw();
}
