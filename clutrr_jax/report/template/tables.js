// The heat maps of a run, and accuracy by group.

function noise() {
  if (DATA.oneNoise) {
    $("noise").hidden = $("noise-link").hidden = true;
    return;
  }
  const kinds = [...new Set(DATA.tests.map((test) => test.noise))];
  const lengths = [...new Set(DATA.tests.map((test) => test.k))].sort((a, b) => a - b);
  fill($("noise-k"), [["", "all"], ...lengths.map((k) => [String(k), `k=${k}`])]);
  const models = [...new Set(DATA.rows.map((row) => row.model))];

  function draw() {
    const k = $("noise-k").value;
    const body = models.map((model) => el("tr", {},
      el("th", { scope: "row" }, model),
      ...kinds.map((kind) => {
        const tests = DATA.tests.filter((t) => t.noise === kind && (!k || String(t.k) === k));
        const rows = DATA.rows.filter((row) => row.model === model
          && tests.some((test) => test.name === row.task));
        if (!rows.length) return el("td", {});
        const count = sum(rows.map((row) => row.count));
        const mean = sum(rows.map((row) => row.accuracy * row.count)) / count;
        return heat(mean, share(mean), many(count, "story", "stories"));
      })));
    $("noise-body").replaceChildren(el("table", {},
      el("thead", {}, el("tr", {}, el("th", {}, "model"),
        ...kinds.map((kind) => el("th", { scope: "col" }, DATA.noise[kind])))),
      el("tbody", {}, ...body)));
  }
  $("noise-k").addEventListener("change", draw);
  draw();
}

function confusion(browse) {
  fill($("confusion-model"), MODELS.map((name) => [name, name]));
  fill($("confusion-test"), TEST_OPTIONS);

  function draw() {
    const [model, test] = [$("confusion-model").value, $("confusion-test").value];
    const size = UNSTATED;
    const counts = range(size).map(() => new Array(size).fill(0));
    const chosen = range(COUNT).filter(inTest(test));
    for (const story of chosen) {
      for (const answer of answers(model, story)) counts[target(story)][answer] += 1;
    }
    // Relations are in the order of their kind, not of their number: kin beside kin.
    const used = DATA.order.filter((r) => sum(counts[r]) || counts.some((row) => row[r]));
    const labels = used.filter((r) => sum(counts[r]));
    const body = labels.map((label) => {
      const all = sum(counts[label]);
      return el("tr", {},
        el("th", { scope: "row" }, relation(label)),
        ...used.map((answer) => {
          const count = counts[label][answer];
          if (!count) return el("td", { class: "heat" });
          const title = `${relation(label)} answered as ${relation(answer)}: ${count} of ${all}`;
          const go = () => browse({ model, test, target: String(label), answer: String(answer) });
          const text = count / all < 0.005 ? "<1" : String(Math.round((100 * count) / all));
          const button = el("button", { type: "button", onclick: go, "aria-label": title }, text);
          return heat(count / all, button, title);
        }),
        el("td", {}, all.toLocaleString("en")));
    });
    $("confusion-body").replaceChildren(el("table", { class: "matrix" },
      el("thead", {}, el("tr", {}, el("th", {}, "label"),
        ...used.map((r) => el("th", { scope: "col" }, el("span", {}, relation(r)))),
        el("th", { scope: "col" }, el("span", {}, "answers")))),
      el("tbody", {}, ...body)));
  }
  $("confusion-model").addEventListener("change", draw);
  $("confusion-test").addEventListener("change", draw);
  draw();
}

// Accuracy of every model by what the stories have in common; the head of a column sorts.
function groups(browse) {
  const PAGE = 25;
  const KEYS = { clause, people, relation: (story) => relation(target(story)) };
  let [sortBy, descending, shown] = ["stories", true, PAGE];
  fill($("group-test"), TEST_OPTIONS);

  function collect() {
    const found = new Map();
    const key = KEYS[$("group-by").value];
    for (const story of range(COUNT).filter(inTest($("group-test").value))) {
      const name = key(story);
      if (!found.has(name)) found.set(name, { name, list: [] });
      found.get(name).list.push(story);
    }
    return [...found.values()].map(({ name, list }) => {
      const row = { name, stories: list.length };
      for (const model of MODELS) {
        const all = verdicts(model);
        row[model] = sum(list.map((s) => all[s].right)) / (list.length * all[list[0]].replicas);
      }
      return row;
    });
  }

  function draw() {
    const by = $("group-by").value;
    const rows = collect().sort((a, b) => {
      const [x, y] = [a[sortBy], b[sortBy]];
      const order = typeof x === "number" ? x - y : x.localeCompare(y);
      return (descending ? -order : order) || b.stories - a.stories;
    });
    const columns = ["name", "stories", ...MODELS];
    const head = columns.map((column) => {
      const sorted = column === sortBy ? (descending ? "descending" : "ascending") : null;
      const arrow = { descending: " ↓", ascending: " ↑" }[sorted] ?? "";
      return el("th", { scope: "col", "aria-sort": sorted }, el("button", {
        type: "button", class: "sort",
        onclick: () => {
          [sortBy, descending] = [column, column === sortBy ? !descending : column !== "name"];
          draw();
          $("groups-body").querySelectorAll(".sort")[columns.indexOf(column)].focus();
        },
      }, (column === "name" ? $("group-by").selectedOptions[0].text : column) + arrow));
    });
    const body = rows.slice(0, shown).map((row) => {
      const go = () => browse({ search: row.name, test: $("group-test").value });
      const name = by === "clause" ? el("button", { type: "button", class: "link", onclick: go }, row.name)
        : String(row.name);
      return el("tr", {}, el("th", { scope: "row", class: "wrap" }, name),
        el("td", {}, String(row.stories)),
        ...MODELS.map((model) => heat(row[model], share(row[model]))));
    });
    const more = rows.length > shown ? el("p", {}, el("button", {
      type: "button", onclick: () => { shown += 4 * PAGE; draw(); },
    }, `Show more of ${rows.length.toLocaleString("en")}`)) : null;
    $("groups-body").replaceChildren(...[
      el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body)), more,
    ].filter(Boolean));
  }
  for (const id of ["group-by", "group-test"]) {
    $(id).addEventListener("change", () => { shown = PAGE; draw(); });
  }
  draw();
}
