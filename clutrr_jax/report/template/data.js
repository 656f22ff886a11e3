// Access to the test stories and predictions of a run. Stories, relations, people and models' facts
// are referred to by index.

const STORIES = DATA.stories;
const COUNT = STORIES.text.length;
const MODELS = Object.keys(DATA.models);
const UNSTATED = DATA.relations.length;
const ONE_NOISE_TYPE = unique(DATA.tests.map((test) => test.noise)).length === 1;

// A list of relations is a string with one letter per relation, from "a".
const relationAt = (letters, i) => letters.charCodeAt(i) - 97;
const relationName = (relation) => DATA.relations[relation];
const target = (story) => relationAt(STORIES.target, story);
const predictions = (model, story) =>
  DATA.models[model].predictions.map((replica) => relationAt(replica, story));
const testOf = (story) => DATA.tests[STORIES.test[story]];
const peopleCount = (story) => STORIES.names[story].length;
// "T.K/ROW": rows count from 1 within their test, as in predictions.csv.
const STORY_IDS = (() => {
  const seen = new Array(DATA.tests.length).fill(0);
  return range(COUNT).map((story) => `${testOf(story).name}/${++seen[STORIES.test[story]]}`);
})();

// Per story: the most frequent prediction over the replicas (of equally frequent ones, that of the
// lowest replica), all predictions with their counts, and the number of correct replicas.
const summaries = (() => {
  const known = {};
  return (model) => (known[model] ??= range(COUNT).map((story) => {
    const predicted = predictions(model, story);
    const counts = new Map();
    for (const relation of predicted) counts.set(relation, (counts.get(relation) ?? 0) + 1);
    const ranked = [...counts].sort((a, b) => b[1] - a[1]);
    const [[prediction, votes]] = ranked;
    return {
      prediction, votes, ranked, isCorrect: prediction === target(story),
      correct: counts.get(target(story)) ?? 0, replicas: predicted.length,
    };
  }));
})();

// Choice of tests in a select element: all, or the index of one.
const TEST_OPTIONS = [["", "all"], ...DATA.tests.map((test, i) => [String(i), test.label])];
const storiesIn = (choice) =>
  range(COUNT).filter((story) => choice === "" || STORIES.test[story] === Number(choice));
