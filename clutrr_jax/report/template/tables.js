// Accuracy by noise type, the confusion matrix, and accuracy by story group.

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

// The header of a column sorts by it, and reverses the order when selected again.
function showGroups(browse) {
  const PAGE = 25;
  const KEYS = {
    clause: (story) => STORIES.clause[story],
    people: peopleCount,
    label: (story) => relationName(target(story)),
  };
  let [sortBy, descending, shown] = ["stories", true, PAGE];
  fillSelect($("group-test"), TEST_OPTIONS);

  function collect() {
    const groups = new Map();
    const key = KEYS[$("group-by").value];
    for (const story of storiesIn($("group-test").value)) {
      if (!groups.has(key(story))) groups.set(key(story), []);
      groups.get(key(story)).push(story);
    }
    return [...groups].map(([name, stories]) => {
      const row = { name, stories: stories.length };
      for (const model of MODELS) {
        const all = summaries(model);
        row[model] = sum(stories.map((s) => all[s].correct / all[s].replicas)) / stories.length;
      }
      return row;
    });
  }

  function header(column, i) {
    const sorted = column === sortBy ? (descending ? "descending" : "ascending") : null;
    const arrow = { descending: " ↓", ascending: " ↑" }[sorted] ?? "";
    const name = column === "name" ? $("group-by").selectedOptions[0].text : column;
    const onclick = () => {
      [sortBy, descending] = [column, column === sortBy ? !descending : column !== "name"];
      draw();
      $("groups-body").querySelectorAll(".sort")[i].focus();
    };
    return el("th", { scope: "col", "aria-sort": sorted },
      el("button", { type: "button", class: "sort", onclick }, name + arrow));
  }

  function draw() {
    const rows = collect().sort((a, b) => {
      const [x, y] = [a[sortBy], b[sortBy]];
      const order = typeof x === "number" ? x - y : x.localeCompare(y);
      return (descending ? -order : order) || b.stories - a.stories;
    });
    const label = (name) => {
      if ($("group-by").value !== "clause") return String(name);
      const onclick = () => browse({ search: name, test: $("group-test").value });
      return el("button", { type: "button", class: "link", onclick }, name);
    };
    const body = rows.slice(0, shown).map((row) =>
      el("tr", {}, el("th", { scope: "row", class: "wrap" }, label(row.name)),
        el("td", {}, String(row.stories)),
        ...MODELS.map((model) => heatCell(row[model], fraction(row[model])))));
    const showMore = () => {
      shown += 4 * PAGE;
      draw();
    };
    const more = rows.length > shown ? el("p", {}, el("button", { type: "button", onclick: showMore },
      `Show more of ${rows.length.toLocaleString("en")}`)) : "";
    $("groups-body").replaceChildren(makeTable(["name", "stories", ...MODELS].map(header), body), more);
  }
  for (const id of ["group-by", "group-test"]) {
    $(id).addEventListener("change", () => {
      shown = PAGE;
      draw();
    });
  }
  draw();
}
