// Models that extract a graph from the text: precision and recall, the graph of each story with the
// words that state its facts, and the proof of the prediction from it.

const EXTRACTORS = MODELS.filter((model) => DATA.models[model].extracted);
// Prefixes of the relation, so that the kinds of facts differ not only in color.
const PREFIXES = { right: "✓ ", follows: "∴ ", wrong: "✗ ", unjudged: "", missing: "missing: " };
const EXTRACTED_LEGEND = "Second graph: facts that the model extracts from the text, with a "
  + "probability above .5. ✓: stated. ∴, thin: not stated, but implied by the stated facts. ✗, bold: "
  + "wrong. Missing, dashed: stated, but not extracted.";

const extractedFacts = (model, story) =>
  DATA.models[model].extracted[story].map(([x, relation, y, kind, percent]) => {
    const name = DATA.factKinds[kind];
    return { x, relation, y, percent, name, kind: `extracted-${name}`, prefix: PREFIXES[name] };
  });

const wordFacts = (model, story) =>
  DATA.models[model].wordFacts[story].map(([word, x, relation, y, kind, percent]) =>
    ({ word, x, relation, y, percent, name: DATA.factKinds[kind] }));

const factBadge = (fact) => el("span", { class: "badge" },
  PREFIXES[fact.name].trim().replace(":", "") || "not judged");

// Each sentence, with the facts that its words state.
function sentenceList(model, story) {
  const facts = wordFacts(model, story);
  const starts = STORIES.sentences[story];
  return el("ol", { class: "steps sentences" }, ...starts.map((from, i) => {
    const to = starts[i + 1] ?? STORIES.words[story].length;
    const words = storyWords(story, from, to, (i, node) => {
      const fact = facts.find(({ word }) => word === i);
      return fact ? shadedWord(node, fact.percent / 100, { class: `word states-${fact.name}` }) : node;
    });
    const items = facts.filter(({ word }) => word >= from && word < to).map((fact) =>
      el("li", {}, el("b", {}, storyWords(story, fact.word, fact.word + 1)[0]), ": ",
        ...factText(story, fact), " ", factBadge(fact),
        el("span", { class: "note" }, ` ${fact.percent} %`)));
    return el("li", {}, el("div", { class: "text" }, ...words),
      el("ul", {}, ...(items.length ? items : [el("li", { class: "note" }, "No fact.")])));
  }));
}

// Shows extracted and missing facts. Other facts only support the proof and are in the list.
function extractedGraph(model, story, stated) {
  const shown = extractedFacts(model, story).filter((f) => f.percent > 50 || f.name === "missing");
  return el("figure", {}, el("figcaption", {}, `Extracted by ${model}, first replica`),
    graph(story, shown, null, stated));
}

function extractedDetails(model, story) {
  const facts = extractedFacts(model, story);
  const { proofs, proofProbability, wordFacts: ofWords } = DATA.models[model];
  const prediction = relationName(predictions(model, story)[0]);
  const items = facts.map((fact) => el("li", {}, ...factText(story, fact), " ",
    factBadge(fact),
    el("span", { class: "note" }, ` probability ${fraction(fact.percent / 100)}`)));
  const steps = proofs?.[story];
  const proof = () => {
    if (!proofs) return [el("p", {}, "This model has no rules to prove its prediction with.")];
    if (!steps) return [el("p", {}, "The prediction does not follow from the extracted facts by the model’s rules.")];
    const probability = fraction(proofProbability[story] / 100);
    return [note(`Most probable proof by the model’s rules, probability ${probability}.`),
      proofList(story, facts, steps)];
  };
  const reading = ofWords ? [
    el("h3", {}, `Sentences as read by ${model}`),
    note("First replica. Marked words state a fact with a probability of at least 10 %. ✓: stated. ∴: "
      + "not stated, but implied by the stated facts. ✗: wrong. Facts about the query pair are not "
      + "judged."),
    sentenceList(model, story),
  ] : [];
  return [
    ...reading,
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
  const isLength = (name) => name.startsWith("k = ");
  const isWording = (name) => name.includes("[A]");

  // In the original order, rows of another kind have a line above the first one.
  function fill(id, [columns, ...lines], kind) {
    sortableTable($(id), columns, lines.map((line) => [line]), ([name, ...cells], before, isSorted) =>
      el("tr", { class: !isSorted && before && kind(name) !== kind(before[0]) ? "first" : null },
        el("th", { scope: "row", class: isWording(name) ? "wrap" : null }, name),
        ...cells.map((cell) => el("td", {}, cell))));
  }

  function draw() {
    const model = $("extraction-model").value;
    fill("extraction-body", DATA.extraction[model], isLength);
    fill("wordings-body", DATA.wordings[model], isWording);
  }
  $("extraction-model").addEventListener("change", draw);
  if (models.length) draw();
}
