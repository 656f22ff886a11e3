// The confusion matrix, and accuracy by story group.

function showConfusion(browse) {
  function draw() {
    const [model, test] = [$("confusion-model").value, $("confusion-test").value];
    const counts = SET.relations.map(() => new Array(UNSTATED + 1).fill(0));
    for (const story of storiesIn(test)) {
      for (const relation of predictions(model, story)) counts[target(story)][relation] += 1;
    }
    const labels = SET.relationOrder.filter((r) => sum(counts[r]));
    const predicted = [...SET.relationOrder, UNSTATED]
      .filter((r) => labels.includes(r) || counts.some((row) => row[r]));
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
    const rows = labels.map((label) => tableRow(relationName(label),
      [...predicted.map((prediction) => cell(label, prediction)), sum(counts[label]).toLocaleString("en")]));
    const columns = [...predicted.map(relationName), "predictions"];
    $("confusion-body").replaceChildren(makeTable(
      ["label ↓ predicted →", ...columns.map((name) => el("span", {}, name))],
      rows, { class: "matrix" }));
  }
  fillSelect("confusion-model", MODELS, draw);
  fillSelect("confusion-test", TEST_OPTIONS, draw);
  draw();
}

function showGroups(browse) {
  const KEYS = {
    clause: (story) => STORIES.clause[story],
    "number of people": peopleCount,
    label: (story) => relationName(target(story)),
  };

  function draw() {
    const [by, test] = [$("group-by").value, $("group-test").value];
    const accuracy = (model, stories) => {
      const answered = stories.map((story) => SUMMARIES[model][story]).filter(({ replicas }) => replicas);
      return sum(answered.map(({ correct, replicas }) => correct / replicas)) / answered.length;
    };
    const lines = [...Map.groupBy(storiesIn(test), KEYS[by])].map(([name, stories]) =>
      [String(name), String(stories.length), ...MODELS.map((m) => fraction(accuracy(m, stories)).replace("NaN", ""))]);
    lines.sort((a, b) => b[1] - a[1]);
    const label = (name) => (by !== "clause" ? name : el("button",
      { type: "button", class: "link", onclick: () => browse({ search: name, test }) }, name));
    sortableTable("groups-body", [by, "stories", ...MODELS], lines.map((line) => [line]),
      ([name, count, ...cells]) =>
        tableRow(el("th", { scope: "row", class: "wrap" }, label(name)),
          [count, ...cells.map((cell) => (cell ? heatCell(Number(cell), cell) : ""))]), { most: 20 });
  }
  fillSelect("group-by", Object.keys(KEYS), draw);
  fillSelect("group-test", TEST_OPTIONS, draw);
  draw();
}
