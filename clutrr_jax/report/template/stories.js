// The story browser: filters, a paged list, and one story opened.

const factName = (fact) => (fact.relation === UNSTATED ? "not stated" : relation(fact.relation));

// Facts beyond the clause's first k are noise.
function factsOf(story) {
  const flat = STORIES.facts[story];
  return range(flat.length / 3).map((i) => (
    { x: flat[3 * i], relation: flat[3 * i + 1], y: flat[3 * i + 2], noise: i >= task(story).k }
  ));
}

function person(story, number) {
  const asked = STORIES.query[story].includes(number) ? " asked" : "";
  const style = `person c${number % 8}${number >= 8 ? " more" : ""}${asked}`;
  return el("span", { class: style }, STORIES.names[story][number]);
}

// What a model with attention attends to, 0 to 1, relative to the most in the story.
function attentionOf(story, over) {
  const model = DATA.models[$("attended").value];
  return model?.over === over ? [...model.attention[story]].map((digit) => digit / 9) : null;
}

function told(story, weights) {
  const named = (part, bracketed) => {
    const number = bracketed ? STORIES.names[story].indexOf(part) : -1;
    return number < 0 ? part : person(story, number);
  };
  if (!weights) {
    const parts = STORIES.text[story].split(/\[([^[\]]+)\]/);
    return el("p", { class: "text" }, ...parts.map((part, i) => named(part, i % 2)));
  }
  const letters = [...STORIES.text[story]];
  const starts = STORIES.words[story];
  return el("p", { class: "text" }, ...starts.flatMap((start, i) => {
    const piece = letters.slice(start, starts[i + 1]).join("");
    const word = piece.trimEnd();
    const name = word.startsWith("[") && word.endsWith("]");
    const shown = el("span", { class: "word" }, named(name ? word.slice(1, -1) : word, name));
    shown.style.setProperty("--v", `${Math.round(50 * weights[i])}%`);
    return [shown, piece.slice(word.length)];
  }));
}

const says = (story, fact) =>
  [person(story, fact.y), ` is the ${factName(fact)} of `, person(story, fact.x)];

function factList(story, facts) {
  const [x, y] = STORIES.query[story];
  return el("ol", { class: "steps" }, ...facts.map((fact) => {
    const stated = (fact.x === x && fact.y === y) || (fact.x === y && fact.y === x);
    const badge = fact.noise
      ? el("span", { class: "badge" }, stated ? "states the answer" : "noise") : null;
    const words = fact.relation === UNSTATED
      ? [person(story, fact.x), " and ", person(story, fact.y), ", how is not stated"]
      : says(story, fact);
    return el("li", {}, ...words, badge ? " " : null, badge);
  }));
}

function proof(story, facts) {
  const steps = STORIES.proof[story];
  if (steps === null) return el("p", {}, "The label does not follow from the facts by the 16 rules.");
  if (!steps.length) return el("p", {}, "The label is one of the facts.");
  return proofList(story, facts, steps);
}

function proofList(story, facts, steps) {
  // A step is x, relation, y, and the numbers of the two that it rests on: facts, then steps.
  const name = (i) => (i < facts.length ? `fact ${i + 1}` : `step ${i - facts.length + 1}`);
  return el("ol", { class: "steps" }, ...steps.map(([x, r, y, first, second]) =>
    el("li", {}, ...says(story, { x, relation: r, y }), el("span", { class: "quiet" },
      `, from ${name(first)} and ${name(second)}`))));
}

function answerTable(story) {
  const rows = MODELS.map((model) => {
    const { answer, votes, replicas } = verdicts(model)[story];
    const counts = new Map();
    for (const said of answers(model, story)) counts.set(said, (counts.get(said) ?? 0) + 1);
    const all = [...counts].sort((a, b) => b[1] - a[1]);
    const right = answer === target(story);
    return el("tr", {}, el("th", { scope: "row" }, model),
      el("td", { class: right ? "right mark-right" : "wrong mark-wrong" }, relation(answer)),
      el("td", {}, `${votes} of ${replicas}`),
      el("td", { class: "quiet" }, all.slice(1).map(([r, n]) => `${relation(r)} ${n}`).join(", ")));
  });
  return el("div", { class: "scroll" }, el("table", { class: "answers" },
    el("thead", {}, el("tr", {}, 
      ...["model", "answer", "replicas", "other answers"].map((name) =>
        el("th", { scope: "col" }, name)))),
    el("tbody", {}, ...rows)));
}

function question(story) {
  const [x, y] = STORIES.query[story];
  return ["What is ", person(story, y), " to ", person(story, x), "? ",
    el("strong", {}, relation(target(story)))];
}

function open(story) {
  const facts = factsOf(story);
  const readings = STORIES.readings[story];
  $("story").replaceChildren(
    el("p", { class: "quiet" }, `${DATA.noise[task(story).noise]}, clause length ${task(story).k}: `
      + clause(story)),
    told(story, attentionOf(story, "words")),
    $("attended").value ? el("p", { class: "quiet" }, `Attention of ${$("attended").value}, first `
      + "replica, relative to the most in the story: the shade of a word, the width of an arrow.") : "",
    el("p", {}, ...question(story)),
    readings > 1 ? el("p", { class: "quiet" },
      `By the rules ${readings} answers are right; the label is one of them.`) : "",
    el("h3", {}, "Answers"), answerTable(story),
    el("h3", {}, "Graph"), el("div", { class: "beside" },
      graph(story, facts, attentionOf(story, "facts")),
      ...READERS.map((model) => readGraph(model, story, facts))),
    READERS.length ? el("p", { class: "quiet" }, READ_LEGEND) : "",
    el("p", { class: "quiet" }, "An arrow from X to Y says what Y is to X. Squares are men, circles "
      + "women; a row is a generation. Dashed: noise; dotted: the question."),
    el("h3", {}, "Facts"), factList(story, facts),
    el("h3", {}, "Proof"), proof(story, facts),
    ...READERS.flatMap((model) => readBy(model, story, facts)));
}

// Returns the function that shows the stories of a filter, given as {model, test, ...}.
function stories() {
  const PAGE = 50;
  const FIELDS = ["model", "outcome", "test", "target", "answer", "search"];
  let [found, first, current] = [[], 0, null];
  fill($("model"), MODELS.map((name) => [name, name]));
  fill($("test"), TEST_OPTIONS);
  const attending = MODELS.filter((name) => DATA.models[name].over);
  $("attended-label").hidden = !attending.length;
  fill($("attended"), [["", "none"],
    ...attending.map((name) => [name, `${name}, over ${DATA.models[name].over}`])]);
  const relations = DATA.order.map((r) => [String(r), relation(r)]);
  for (const id of ["target", "answer"]) fill($(id), [["", "any"], ...relations]);

  function matches() {
    const [model, outcome, test, label, answer, search] = FIELDS.map((id) => $(id).value);
    const all = verdicts(model);
    const text = search.trim().toLowerCase();
    const OUTCOMES = {
      any: () => true,
      right: (s) => all[s].answer === target(s),
      wrong: (s) => all[s].answer !== target(s),
      differ: (s) => all[s].kinds > 1,
    };
    const tested = inTest(test);
    return range(COUNT).filter((s) => tested(s) && OUTCOMES[outcome](s)
      && (label === "" || target(s) === Number(label))
      && (answer === "" || answers(model, s).includes(Number(answer)))
      && (text === "" || STORIES.text[s].replace(/[[\]]/g, "").toLowerCase().includes(text)
        || clause(s).toLowerCase() === text || PLACE[s] === text));
  }

  function list() {
    const all = verdicts($("model").value);
    const rows = found.slice(first, first + PAGE).map((s) => {
      const [x, y] = STORIES.query[s].map((p) => STORIES.names[s][p]);
      const right = all[s].answer === target(s) ? "right mark-right" : "wrong mark-wrong";
      return el("tr", { "aria-current": s === current ? "true" : null, onclick: () => show(s, true) },
        el("td", {}, el("button", { type: "button", class: "link" }, PLACE[s])),
        el("td", {}, `${y} to ${x}`),
        el("td", {}, relation(target(s))),
        el("td", { class: right }, relation(all[s].answer)));
    });
    $("list").replaceChildren(
      el("thead", {}, el("tr", {}, ...["story", "question", "label", "answer"].map((name) =>
        el("th", { scope: "col" }, name)))),
      el("tbody", {}, ...rows));
    const last = Math.min(first + PAGE, found.length);
    $("count").textContent = found.length
      ? `${first + 1} to ${last} of ${many(found.length, "story", "stories")}` : "No such story";
    $("before").disabled = first === 0;
    $("next").disabled = last >= found.length;
  }

  function show(story, go) {
    current = story;
    open(story);
    const at = found.indexOf(story);
    if (at >= 0) first = PAGE * Math.floor(at / PAGE);
    $("story").prepend(el("div", { class: "pager" }, el("h3", {}, `Story ${PLACE[story]}`),
      ...[["Previous", found[at - 1]], ["Next", found[at + 1]]].map(([name, other]) =>
        el("button", {
          type: "button",
          "aria-label": `${name} story`,
          disabled: at < 0 || other === undefined ? "" : null,
          onclick: () => show(other, true),
        }, name))));
    list();
    $("story").scrollTop = 0;
    if (!go) return;
    history.replaceState(null, "", `#story=${PLACE[story]}`);
    $("story").focus({ preventScroll: true });
    if (matchMedia("(max-width: 60rem)").matches) $("story").scrollIntoView();
  }

  function filter() {
    [found, first] = [matches(), 0];
    list();
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

  let waiting;
  $("filters").addEventListener("change", (event) => {
    if (event.target === $("attended")) show(current, false);
    else if (event.target !== $("search")) filter();
  });
  $("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 120);
  });
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("before").addEventListener("click", () => turn(-1));
  $("next").addEventListener("click", () => turn(1));
  filter();
  const linked = PLACE.indexOf(decodeURIComponent(location.hash.replace("#story=", "")));
  show(Math.max(0, linked), linked >= 0);
  return browse;
}
