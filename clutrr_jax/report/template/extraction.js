// Models that extract a graph from the text: precision and recall, the graph of each story, and the
// proof of the prediction from it.

const EXTRACTORS = MODELS.filter((model) => DATA.models[model].extracted);
// Prefixes of the relation, so that the kinds of facts differ not only in color.
const PREFIXES = { right: "✓ ", follows: "∴ ", wrong: "✗ ", unjudged: "", missing: "missing: " };
const EXTRACTED_LEGEND = "Second graph: facts that the model extracts from the text, with a "
  + "probability above .5. ✓: stated. ∴, thin: not stated, but implied by the stated facts. ✗, bold: "
  + "wrong. Missing, dashed: stated, but not extracted.";

// The numbers of a story are five per fact: x, relation, y, kind, probability in percent.
function extractedFacts(model, story) {
  const flat = DATA.models[model].extracted[story];
  return range(flat.length / 5).map((i) => {
    const [x, relation, y, kind, percent] = flat.slice(5 * i, 5 * i + 5);
    const name = DATA.factKinds[kind];
    return { x, relation, y, percent, name, kind: `extracted-${name}`, prefix: PREFIXES[name] };
  });
}

// Shows extracted and missing facts. Other facts only support the proof and are in the list.
function extractedGraph(model, story, stated) {
  const shown = extractedFacts(model, story).filter((f) => f.percent > 50 || f.name === "missing");
  return el("figure", {}, el("figcaption", {}, `Extracted by ${model}, first replica`),
    graph(story, shown, null, stated));
}

function extractedDetails(model, story) {
  const facts = extractedFacts(model, story);
  const { proofs, proofProbability } = DATA.models[model];
  const prediction = relationName(predictions(model, story)[0]);
  const badge = (fact) => PREFIXES[fact.name].trim().replace(":", "") || "not judged";
  const items = facts.map((fact) => el("li", {}, ...factText(story, fact), " ",
    el("span", { class: "badge" }, badge(fact)),
    el("span", { class: "note" }, ` probability ${fraction(fact.percent / 100)}`)));
  const steps = proofs?.[story];
  const proof = () => {
    if (!proofs) return [el("p", {}, "This model has no rules to prove its prediction with.")];
    if (!steps) return [el("p", {}, "The prediction does not follow from the extracted facts by the model’s rules.")];
    const probability = fraction(proofProbability[story] / 100);
    return [note(`Most probable proof by the model’s rules, probability ${probability}.`),
      proofList(story, facts, steps)];
  };
  return [
    el("h3", {}, `Facts extracted by ${model}`),
    items.length ? el("ol", { class: "steps" }, ...items) : el("p", {}, "None."),
    el("h3", {}, `Proof of its prediction, ${prediction}`),
    ...proof(),
  ];
}

function showExtraction() {
  const models = Object.keys(DATA.extraction);
  $("extraction").hidden = $("extraction-link").hidden = !models.length;
  $("extraction-legend").textContent = DATA.extractionLegend;
  fillSelect($("extraction-model"), models.map((name) => [name, name]));
  function draw() {
    const [columns, ...lines] = DATA.extraction[$("extraction-model").value];
    const byLength = (name) => name.startsWith("k = ");
    // A line above the first group by length and the first group by relation.
    const rows = lines.map(([name, ...cells], i) => el("tr",
      { class: i && byLength(name) !== byLength(lines[i - 1][0]) ? "first" : null },
      rowHeader(name), ...cells.map((cell) => el("td", {}, cell))));
    $("extraction-body").replaceChildren(makeTable(columns, rows));
  }
  $("extraction-model").addEventListener("change", draw);
  if (models.length) draw();
}
