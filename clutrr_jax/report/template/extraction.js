// Models that extract a graph from the text: precision and recall, the graph of each story with the
// words that state its facts, and the proof of the prediction from it.

const EXTRACTORS = MODELS.filter((model) => SET.models[model].extracted);
// Prefixes of the relation, so that the kinds of facts differ not only in color.
const PREFIXES = { right: "✓ ", follows: "∴ ", wrong: "✗ ", unjudged: "", missing: "missing: " };
const EXTRACTED_LEGEND = "Second graph: facts that the model extracts from the text, with a "
  + "probability above .5. ✓: stated. ∴, thin: not stated, but implied by the stated facts. ✗, bold: "
  + "wrong. Missing, dashed: stated, but not extracted.";

function judgedFact([x, relation, y, kind, percent]) {
  const name = DATA.factKinds[kind];
  return { x, relation, y, percent, name, kind: `extracted-${name}`, prefix: PREFIXES[name] };
}

const judgedText = (story, fact) => [
  ...factText(story, fact), " ",
  el("span", { class: "badge" }, fact.prefix.trim().replace(":", "") || "not judged"),
  el("span", { class: "note" }, ` ${fact.percent} %`),
];

// Each sentence, with the facts that its words state.
function sentenceList(model, story) {
  const facts = SET.models[model].wordFacts[story].map(([word, ...fact]) =>
    ({ word, ...judgedFact(fact) }));
  const starts = STORIES.sentences[story];
  return el("ol", { class: "steps sentences" }, ...starts.map((from, i) => {
    const to = starts[i + 1] ?? STORIES.words[story].length;
    const words = storyWords(story, from, to, (i, node) => {
      const fact = facts.find(({ word }) => word === i);
      return fact ? shadedWord(node, fact.percent / 100, { class: `word states-${fact.name}` }) : node;
    });
    const items = facts.filter(({ word }) => word >= from && word < to).map((fact) =>
      el("li", {}, el("b", {}, storyWords(story, fact.word, fact.word + 1)[0]), ": ",
        ...judgedText(story, fact)));
    return el("li", {}, el("div", { class: "text" }, ...words),
      el("ul", {}, ...(items.length ? items : [el("li", { class: "note" }, "No fact.")])));
  }));
}

// Shows extracted and missing facts. Other facts only support the proof and are in the list.
function extractedGraph(model, story, stated) {
  const shown = SET.models[model].extracted[story].map(judgedFact)
    .filter((fact) => fact.percent > 50 || fact.name === "missing");
  return el("figure", {}, el("figcaption", { class: "note" }, `Extracted by ${model}, first replica`),
    graph(story, shown, null, stated));
}

function extractedDetails(model, story) {
  const { extracted, proofs, proofProbability, wordFacts } = SET.models[model];
  const facts = extracted[story].map(judgedFact);
  const prediction = relationName(predictions(model, story)[0]);
  const steps = proofs?.[story];
  const proof = () => {
    if (!proofs) return [el("p", {}, "This model has no rules to prove its prediction with.")];
    if (!steps) return [el("p", {}, "The prediction does not follow from the extracted facts by the model’s rules.")];
    const probability = fraction(proofProbability[story] / 100);
    return [note(`Most probable proof by the model’s rules, probability ${probability}.`),
      proofList(story, facts, steps)];
  };
  const reading = wordFacts ? [
    el("h3", {}, `Sentences as read by ${model}`),
    note("First replica. Marked words state a fact with a probability of at least 10 %. ✓: stated. ∴: "
      + "not stated, but implied by the stated facts. ✗: wrong. Facts about the query pair are not "
      + "judged."),
    sentenceList(model, story),
  ] : [];
  return [
    ...reading,
    el("h3", {}, `Facts extracted by ${model}`),
    note("With the probability of each fact."),
    el("ol", { class: "steps" }, ...facts.map((fact) => el("li", {}, ...judgedText(story, fact)))),
    el("h3", {}, `Proof of its prediction, ${prediction}`),
    ...proof(),
  ];
}

function showExtraction() {
  const models = Object.keys(SET.extraction);
  if (!models.length) return $("extraction").remove();
  $("extraction-legend").textContent = DATA.extractionLegend;
  const fill = (id, [columns, ...lines]) =>
    sortableTable(id, columns, lines.map((line) => [line]), ([name, ...cells]) =>
      tableRow(el("th", { scope: "row", class: "wrap" }, name), cells));

  function draw() {
    const model = $("extraction-model").value;
    fill("extraction-body", SET.extraction[model]);
    $("wordings").hidden = !SET.wordings[model];
    if (SET.wordings[model]) fill("wordings-body", SET.wordings[model]);
  }
  fillSelect("extraction-model", models, draw);
  draw();
}
