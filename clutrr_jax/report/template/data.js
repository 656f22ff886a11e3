// What the page of a run is of, story by story.

const STORIES = DATA.stories;
const COUNT = STORIES.text.length;
const MODELS = Object.keys(DATA.models);
const UNSTATED = DATA.relations.length;

// Relations are written as one letter each, from "a".
const letter = (text, i) => text.charCodeAt(i) - 97;
const relation = (number) => DATA.relations[number];
const target = (story) => letter(STORIES.target, story);
const answers = (model, story) =>
  DATA.models[model].predictions.map((replica) => letter(replica, story));
const task = (story) => DATA.tests[STORIES.test[story]];
const people = (story) => STORIES.names[story].length;
const clause = (story) => DATA.clauses[STORIES.clause[story]];
// T.K/ROW; rows count from 1 within their task, as in predictions.csv.
const PLACE = (() => {
  const seen = new Array(DATA.tests.length).fill(0);
  return range(COUNT).map((story) => `${task(story).name}/${++seen[STORIES.test[story]]}`);
})();

// Of each model and story: what most replicas say (of equally many, what the earliest of them says),
// how many say so, and how many are right.
const verdicts = (() => {
  const known = {};
  return (model) => (known[model] ??= range(COUNT).map((story) => {
    const said = answers(model, story);
    const votes = new Map();
    for (const answer of said) votes.set(answer, (votes.get(answer) ?? 0) + 1);
    let most = said[0];
    for (const [answer, count] of votes) if (count > votes.get(most)) most = answer;
    return {
      answer: most, votes: votes.get(most), kinds: votes.size,
      right: votes.get(target(story)) ?? 0, replicas: said.length,
    };
  }));
})();

// The choice of tests: all, or one of T.K.
const TEST_OPTIONS = [["", "all"], ...DATA.tests.map((test, i) => [String(i), test.label])];
const inTest = (choice) => (story) => choice === "" || STORIES.test[story] === Number(choice);
