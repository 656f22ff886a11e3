// The story browser: filters, a list in pages, and one open story.

const factName = (fact) => (fact.relation === UNSTATED ? "not stated" : relationName(fact.relation));

// Facts after the first k, which are the clause, are noise.
const statedFacts = (story) => STORIES.facts[story].map(([x, relation, y], i) =>
  ({ x, relation, y, noise: SET.isKinship && i >= testOf(story).k }));

function person(story, index) {
  const inQuery = STORIES.query[story].includes(index) ? " query" : "";
  const style = `person c${index % 8}${index >= 8 ? " more" : ""}${inQuery}`;
  return el("span", { class: style }, STORIES.names[story][index]);
}

const factText = (story, fact) => SET.isKinship
  ? [person(story, fact.y), ` is the ${factName(fact)} of `, person(story, fact.x)]
  : [person(story, fact.x), ` ${factName(fact)} `, person(story, fact.y)];

// The query pair, in the order in which its relation is read.
const queryPair = (story) => (SET.isKinship ? [...STORIES.query[story]].reverse() : STORIES.query[story]);

// Weights between 0 and 1, relative to the largest in the story, if the selected model has attention
// over "facts" or "words".
function attentionOf(story, over) {
  const model = SET.models[$("attention").value];
  return model?.attentionOver === over ? [...model.attention[story]].map((digit) => digit / 9) : null;
}

// A part of the text; a name in brackets as the person.
function named(story, text) {
  if (!text.startsWith("[") || !text.endsWith("]")) return text;
  const name = text.slice(1, -1);
  const index = STORIES.names[story].indexOf(name);
  return index < 0 ? name : person(story, index);
}

// Words of the text from one index to another, each as wrap(index, node).
function storyWords(story, from, to, wrap = (i, node) => node) {
  const letters = [...STORIES.text[story]];
  const starts = STORIES.words[story];
  return starts.slice(from, to).flatMap((start, i) => {
    const piece = letters.slice(start, starts[from + i + 1]).join("");
    const word = piece.trimEnd();
    return [wrap(from + i, named(story, word)), piece.slice(word.length)];
  });
}

// A word shaded by a weight between 0 and 1.
function shadedWord(node, weight, attributes = { class: "word" }) {
  const word = el("span", attributes, node);
  word.style.setProperty("--v", `${Math.round(50 * weight)}%`);
  return word;
}

// The text, with words shaded by their weights, if any.
function storyText(story, weights) {
  const content = weights
    ? storyWords(story, 0, weights.length, (i, node) => shadedWord(node, weights[i]))
    : STORIES.text[story].split(/(\[[^[\]]+\])/).map((part) => named(story, part));
  return el("p", { class: "text" }, ...content);
}

function factList(story, facts) {
  const query = [...STORIES.query[story]].sort().join();
  return el("ol", { class: "steps" }, ...facts.map((fact) => {
    const text = fact.relation === UNSTATED
      ? [person(story, fact.x), " and ", person(story, fact.y), ", relation not stated"]
      : factText(story, fact);
    const label = [fact.x, fact.y].sort().join() === query ? "states the answer" : "noise";
    const badge = fact.noise ? [" ", el("span", { class: "badge" }, label)] : [];
    return el("li", {}, ...text, ...badge);
  }));
}

// A step is x, relation, y of the derived fact, and the indices of its premises among facts and steps.
function proofList(story, facts, steps) {
  const name = (i) => (i < facts.length ? `fact ${i + 1}` : `step ${i - facts.length + 1}`);
  return el("ol", { class: "steps" }, ...steps.map(([x, relation, y, first, second]) =>
    el("li", {}, ...factText(story, { x, relation, y }), el("span", { class: "note" },
      `, from ${name(first)} and ${name(second)}`))));
}

function labelProof(story, facts) {
  const steps = STORIES.proof[story];
  if (steps === null) return el("p", {}, SET.isKinship
    ? "The label does not follow from the stated facts by the 16 rules."
    : "No proof by compositions with a single head: the label is what all paths together leave.");
  if (!steps.length) return el("p", {}, "The label is a stated fact.");
  return proofList(story, facts, steps);
}

const verdictClass = (isCorrect) => (isCorrect ? "right mark-right" : "wrong mark-wrong");

function predictionTable(story) {
  const rows = MODELS.filter((model) => SUMMARIES[model][story].replicas).map((model) => {
    const { prediction, votes, replicas, ranked, isCorrect } = SUMMARIES[model][story];
    const others = ranked.slice(1).map(([relation, count]) => `${relationName(relation)} ${count}`);
    return tableRow(model, [el("td", { class: verdictClass(isCorrect) }, relationName(prediction)),
      `${votes} of ${replicas}`, el("td", { class: "note" }, others.join(", "))]);
  });
  const columns = ["model", "predicted", "replicas", "other predictions"];
  return el("div", { class: "scroll" }, makeTable(columns, rows, { class: "predictions texts" }));
}

function storyDetails(story) {
  const facts = statedFacts(story);
  const [x, y] = queryPair(story);
  const attending = $("attention").value;
  const test = testOf(story);
  const answers = STORIES.possibleAnswers[story];
  return [
    note(SET.isKinship
      ? `Noise type: ${SET.noiseTypes[test.noise]}. Clause of length ${test.k}: ${STORIES.clause[story]}.`
      : `Paths: ${SET.noiseTypes[test.noise]}, k = ${test.k}.`),
    storyText(story, attentionOf(story, "words")),
    attending ? note(`Attention of ${attending}, first replica, relative to the largest weight in the `
      + "story: shading of a word, or width of an arrow.") : "",
    el("p", {}, "Query: how is ", person(story, x), " related to ", person(story, y), "? Label: ",
      el("strong", {}, relationName(target(story)))),
    answers > 1 ? note(`The rules allow ${answers} answers; the label is one of them.`) : "",
    el("h3", {}, "Predictions"), predictionTable(story),
    el("h3", {}, "Graph of the facts"),
    el("div", { class: "graphs" }, graph(story, facts, attentionOf(story, "facts")),
      ...EXTRACTORS.map((model) => extractedGraph(model, story, facts))),
    EXTRACTORS.length ? note(EXTRACTED_LEGEND) : "",
    note(SET.isKinship
      ? "An arrow from X to Y is labeled with what Y is to X. Squares are men, circles are women; each "
        + "row is a generation. Dashed: noise. Dotted: query."
      : "An arrow from X to Y is labeled with the relation of X to Y. Dotted: query."),
    el("h3", {}, "Stated facts"), factList(story, facts),
    el("h3", {}, "Proof of the label"), labelProof(story, facts),
    ...EXTRACTORS.flatMap((model) => extractedDetails(model, story)),
  ];
}

const OUTCOMES = {
  "correct or wrong": () => true,
  correct: ({ isCorrect }) => isCorrect,
  wrong: ({ isCorrect }) => !isCorrect,
  "different between replicas": ({ ranked }) => ranked.length > 1,
};

// Returns a function that lists the stories of a filter, { model, test, ... } by id of the field.
function showStories() {
  const PAGE = 50;
  let [found, first, current] = [[], 0, null];
  fillSelect("model", MODELS);
  fillSelect("outcome", Object.keys(OUTCOMES));
  fillSelect("test", TEST_OPTIONS);
  const relations = SET.relationOrder.map((r) => [String(r), relationName(r)]);
  fillSelect("target", [["", "any"], ...relations]);
  fillSelect("prediction", [["", "any"], ...relations, [String(UNSTATED), relationName(UNSTATED)]]);
  const attending = MODELS.filter((name) => SET.models[name].attentionOver);
  $("attention-label").hidden = !attending.length;
  fillSelect("attention", [["", "none"],
    ...attending.map((name) => [name, `${name}, over ${SET.models[name].attentionOver}`])]);

  function filter() {
    const [model, outcome, test, label, predicted, search] =
      ["model", "outcome", "test", "target", "prediction", "search"].map((id) => $(id).value);
    const text = search.trim().toLowerCase();
    first = 0;
    found = storiesIn(test).filter((s) => SUMMARIES[model][s].replicas && OUTCOMES[outcome](SUMMARIES[model][s])
      && (label === "" || target(s) === Number(label))
      && (predicted === "" || predictions(model, s).includes(Number(predicted)))
      && (text === "" || STORIES.text[s].replace(/[[\]]/g, "").toLowerCase().includes(text)
        || STORIES.clause[s].toLowerCase() === text || STORY_IDS[s] === text));
    list();
  }

  function list() {
    const rows = found.slice(first, first + PAGE).map((s) => {
      const [x, y] = queryPair(s).map((p) => STORIES.names[s][p]);
      const { isCorrect, prediction } = SUMMARIES[$("model").value][s];
      return el("tr", { "aria-current": s === current ? "true" : null, onclick: () => show(s, true) },
        el("td", {}, el("button", { type: "button", class: "link" }, STORY_IDS[s])),
        el("td", {}, `${x} to ${y}`),
        el("td", {}, relationName(target(s))),
        el("td", { class: verdictClass(isCorrect) }, relationName(prediction)));
    });
    $("list").replaceChildren(makeTable(["id", "query", "label", "predicted"], rows, { class: "texts" }));
    const last = Math.min(first + PAGE, found.length);
    $("count").textContent = found.length
      ? `${first + 1} to ${last} of ${plural(found.length, "story", "stories")}` : "No matching story";
    $("before").disabled = first === 0;
    $("next").disabled = last >= found.length;
  }

  // Opens a story; after a click, `focus` also moves there and changes the address of the page.
  function show(story, focus) {
    current = story;
    const at = found.indexOf(story);
    if (at >= 0) first = PAGE * Math.floor(at / PAGE);
    const buttons = [["Previous", found[at - 1]], ["Next", found[at + 1]]].map(([name, other]) =>
      el("button", {
        type: "button",
        "aria-label": `${name} story`,
        disabled: at < 0 || other === undefined ? "" : null,
        onclick: () => show(other, true),
      }, name));
    $("story").replaceChildren(
      el("div", { class: "pager" }, el("h3", {}, `Story ${STORY_IDS[story]}`), ...buttons),
      ...storyDetails(story));
    list();
    $("story").scrollTop = 0;
    if (!focus) return;
    history.replaceState(null, "", `#story=${STORY_IDS[story]}`);
    $("story").focus({ preventScroll: true });
    if (matchMedia("(max-width: 60rem)").matches) $("story").scrollIntoView();
  }

  function turn(pages) {
    first += pages * PAGE;
    list();
  }

  function browse(wanted) {
    $("filters").reset();
    for (const [id, value] of Object.entries(wanted)) $(id).value = value;
    filter();
    $("stories").scrollIntoView();
    $("list").querySelector("button")?.focus({ preventScroll: true });
  }

  $("filters").addEventListener("change", (event) => {
    if (event.target === $("attention")) show(current, false);
    else if (event.target !== $("search")) filter();
  });
  $("search").addEventListener("input", filter);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("before").addEventListener("click", () => turn(-1));
  $("next").addEventListener("click", () => turn(1));
  filter();
  const linked = STORY_IDS.indexOf(decodeURIComponent(location.hash.replace("#story=", "")));
  show(Math.max(0, linked), linked >= 0);
  return browse;
}
