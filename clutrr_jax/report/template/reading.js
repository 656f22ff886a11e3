// The graph that a model extracts from a story, beside the stated one, and the proof of its answer.

const READERS = MODELS.filter((model) => DATA.models[model].read);
// What stands before the relation: the kinds are told apart without colour too.
const MARKS = { right: "✓ ", follows: "∴ ", wrong: "✗ ", unjudged: "", missing: "missing: " };
const READ_LEGEND = "Second graph: what the model read of the text. ✓ stated; ∴, thin: not stated, "
  + "but follows from what is; ✗, bold: wrong; missing, dashed: stated, but not read. A fact counts as "
  + "read when its chance is above .5.";

// Numbers of a story: x, relation, y, kind, chance in per cent.
function readFacts(model, story) {
  const flat = DATA.models[model].read[story];
  return range(flat.length / 5).map((i) => {
    const [x, relation, y, kind, percent] = flat.slice(5 * i, 5 * i + 5);
    const name = DATA.kinds[kind];
    return { x, relation, y, percent, name, kind: `read-${name}`, mark: MARKS[name] };
  });
}

// Facts that are not sure, and only the proof rests on them, stand in the list alone.
function readGraph(model, story, placed) {
  const shown = readFacts(model, story).filter((f) => f.percent > 50 || f.name === "missing");
  return el("figure", {}, el("figcaption", {}, `Read by ${model}, first replica`),
    graph(story, shown, null, placed));
}

function readBy(model, story) {
  const facts = readFacts(model, story);
  const { proofs, proofChance } = DATA.models[model];
  const answer = letter(DATA.models[model].predictions[0], story);
  const list = el("ol", { class: "steps" }, ...facts.map((fact) => el("li", {},
    ...says(story, fact), " ", el("span", { class: "badge" }, MARKS[fact.name].trim().replace(":", "")
      || "not judged"), el("span", { class: "quiet" }, ` chance ${share(fact.percent / 100)}`))));
  const steps = proofs?.[story];
  const proved = () => {
    if (!proofs) return el("p", {}, "Its reasoner has no rules to prove by.");
    if (!steps) return el("p", {}, "By its rules the answer does not follow from what it read.");
    return proofList(story, facts, steps);
  };
  return [
    el("h3", {}, `Read by ${model}`),
    facts.length ? list : el("p", {}, "Nothing."),
    el("h3", {}, `Its answer, ${relation(answer)}, from what it read`),
    steps ? el("p", { class: "quiet" },
      `The likeliest proof by its rules, chance ${share(proofChance[story] / 100)}.`) : "",
    proved(),
  ];
}

// Precision and recall of every model that extracts a graph.
function extraction() {
  const models = Object.keys(DATA.extraction);
  $("extraction").hidden = $("extraction-link").hidden = !models.length;
  $("extraction-legend").textContent = DATA.extractionLegend;
  fill($("extraction-model"), models.map((name) => [name, name]));
  function draw() {
    const [head, ...lines] = DATA.extraction[$("extraction-model").value];
    const starts = (name, i) => (i && /^k = /.test(name) !== /^k = /.test(lines[i - 1][0]) ? "first" : null);
    $("extraction-body").replaceChildren(el("table", {},
      el("thead", {}, el("tr", {}, ...head.map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, ...lines.map(([name, ...cells], i) => el("tr", { class: starts(name, i) },
        el("th", { scope: "row" }, name), ...cells.map((cell) => el("td", {}, cell)))))));
  }
  $("extraction-model").addEventListener("change", draw);
  if (models.length) draw();
}
