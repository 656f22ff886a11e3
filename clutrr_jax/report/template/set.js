// The data set whose stories are shown: `?set=INDEX` in the address of the page, or the first one.
// Its stories, relations, people and models' facts are referred to by index.

const NO_SET = { tests: [], models: {}, stories: { text: [] }, relations: [] };
const SET = DATA.sets[new URLSearchParams(location.search).get("set")] ?? DATA.sets[0] ?? NO_SET;
const STORIES = SET.stories;
const COUNT = STORIES.text.length;
const MODELS = Object.keys(SET.models);
const UNSTATED = SET.relations.length;

// A list of relations is a string with one letter per relation, from "a". UNSTATED is the prediction of
// an answer without a relation; "-" stands for no answer.
const relationAt = (letters, i) => letters.charCodeAt(i) - 97;
const relationName = (relation) =>
  SET.relations[relation] ?? SET.ofEitherGender[relation - UNSTATED - 1] ?? "no relation";
const target = (story) => relationAt(STORIES.target, story);
const predictions = (model, story) =>
  SET.models[model].predictions.filter((replica) => replica[story] !== "-")
    .map((replica) => relationAt(replica, story));
const testOf = (story) => SET.tests[STORIES.test[story]];
const peopleCount = (story) => STORIES.names[story].length;
// "T.K/ROW": rows count from 1 within their test, as `score` reads them.
const STORY_IDS = (() => {
  const seen = new Array(SET.tests.length).fill(0);
  return range(COUNT).map((story) => `${testOf(story).name}/${++seen[STORIES.test[story]]}`);
})();

// Model -> story -> the most frequent prediction over the replicas (of equally frequent ones, that of
// the lowest replica), all predictions with their counts, and the number of correct replicas.
const SUMMARIES = Object.fromEntries(MODELS.map((model) => [model, range(COUNT).map((story) => {
  const predicted = predictions(model, story);
  const counts = new Map();
  for (const relation of predicted) counts.set(relation, (counts.get(relation) ?? 0) + 1);
  const ranked = [...counts].sort((a, b) => b[1] - a[1]);
  const [[prediction, votes] = []] = ranked;
  return {
    prediction, votes, ranked, isCorrect: prediction === target(story),
    correct: counts.get(target(story)) ?? 0, replicas: predicted.length,
  };
})]));

// Choice of tests in a select element: all, or the index of one.
const TEST_OPTIONS = [["", "all"], ...SET.tests.map((test, i) => [String(i), test.label])];
const storiesIn = (choice) =>
  range(COUNT).filter((story) => choice === "" || STORIES.test[story] === Number(choice));

function showSetChoice() {
  const index = DATA.sets.indexOf(SET);
  fillSelect("set-choice", DATA.sets.map(({ title }, i) => [i, title]), (event) => {
    location.href = `?set=${event.target.value}#confusion`;
  });
  $("set-choice").value = index;
  $("set-line").hidden = DATA.sets.length < 2;
  $("first-stories").hidden = !SET.shown;
  $("first-stories").textContent = `Here are the first ${SET.shown} stories of each test.`;
}
