"""Test stories as prompts for a language model: `python -m clutrr_jax.language_models.prompts`.

Writes one JSON object for each test story: id, task, k, prompt, target. Add what the model says as
`prediction` and give the file to `python -m clutrr_jax.language_models.scoring`. The styles:

  zero-shot         the question and the possible answers
  few-shot          after N solved examples from the train rows
  chain-of-thought  the examples with their proofs, sentence by sentence; with --shots 0 the model
                    is only asked to go step by step

The same seed takes the same examples, whatever the style: rows with a label that follows from the
stated facts by the benchmark's 16 rules.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from clutrr_jax.command import CommandParser, run
from clutrr_jax.data.dataset import load
from clutrr_jax.data.records import Records, tasks
from clutrr_jax.data.story_ids import story_ids
from clutrr_jax.evaluation.proofs import Fact, Step, prove
from generator.errors import InputError, at
from generator.files import write_text
from generator.kinship import RELATION_OF, RELATIONS

SHOTS = 4
# Style -> how many examples it may have: at least, and at most.
STYLES = {"zero-shot": (0, 0), "few-shot": (1, 1000), "chain-of-thought": (0, 1000)}

_TASK = (
    "Read the story about a family and say how the two people of the question are related. The "
    f"answer is one of: {', '.join(sorted(RELATIONS))}."
)
_DIRECT = 'End with a line "Answer: " and that one word.'
_STEPS = "Go step by step, from the facts of the story to the answer. " + _DIRECT


def sentences(records: Records, story: int, proof: list[Step]) -> str:
    """A proof in words."""
    start = records.node_start[story]
    asked = [records.names[start + person] for person in records.query[story]]

    def say(fact: Fact) -> str:
        x, y = start + fact.x, start + fact.y
        relation = RELATIONS[RELATION_OF[fact.predicate, records.genders[y]]]
        return f"{records.names[y]} is the {relation} of {records.names[x]}"

    if not proof:
        return f"The story says what {asked[1]} is to {asked[0]}."
    return " ".join(
        f"{say(step.first)} and {say(step.second)}, so {say(step.head)}." for step in proof
    )


def question(records: Records, story: int) -> str:
    """A story without its brackets, and what is asked of it."""
    x, y = (records.names[records.node_start[story] + person] for person in records.query[story])
    plain = re.sub(r"\[([^\[\]]+)\]", r"\1", records.stories[story])
    return f"Story: {plain}\nQuestion: What is {y} to {x}?"


def examples(train: Records, shots: int, seed: int, steps: bool) -> list[str]:
    """Solved train stories, drawn without replacement.

    Raises:
      InputError: too few of them have a proof.
    """
    found: list[str] = []
    for story in np.random.default_rng(seed).permutation(len(train)).tolist():
        if len(found) == shots:
            break
        proof = prove(train, story)
        if proof is not None:
            thoughts = f"{sentences(train, story, proof)}\n" if steps else ""
            answer = RELATIONS[train.target[story]]
            found.append(f"{question(train, story)}\n{thoughts}Answer: {answer}")
    if len(found) < shots:
        raise InputError(f"--shots {shots}: only {len(found)} train rows have a proof")
    return found


def prompts(test: Records, ids: list[str], solved: list[str], steps: bool) -> Iterator[dict]:
    """The prompts of all test stories by task, as JSON objects.

    Args:
      ids: of the test stories.
      solved: what to show before the question.
      steps: whether to ask for the way to the answer too.
    """
    opening = "\n\n".join([f"{_TASK} {_STEPS if steps else _DIRECT}", *solved])
    for task, stories in tasks(test):
        for story in stories.tolist():
            yield {
                "id": ids[story],
                "task": task,
                "k": int(test.clause_length[story]),
                "prompt": f"{opening}\n\n{question(test, story)}\n",
                "target": RELATIONS[test.target[story]],
            }


def main(arguments: list[str]) -> None:
    """The command."""
    parser = CommandParser("prompts", __doc__)
    parser.add_argument("--style", required=True, choices=list(STYLES))
    parser.add_argument("--shots", type=int, metavar="N",
                        help=f"solved examples [{SHOTS}; zero-shot: 0]")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="draws the examples [0]")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE",
                        help="the file to write, .jsonl")  # fmt: skip
    options = parser.parse_args(arguments)
    least, most = STYLES[options.style]
    shots = min(SHOTS, most) if options.shots is None else options.shots
    if not least <= shots <= most:
        raise InputError(
            f"--shots {shots} with --style {options.style}: expected {least} to {most}"
        )
    if options.seed < 0:
        raise InputError(f"--seed {options.seed}: expected 0 or more")
    data = load(options.data)
    if data.test is None or (shots and data.train is None):
        raise InputError(
            f"{at(options.data)}: expected test rows" + (" and train rows" if shots else "")
        )
    steps = options.style == "chain-of-thought"
    solved = examples(data.train, shots, options.seed, steps) if data.train and shots else []
    ids = story_ids(options.data, data.test)
    lines = [json.dumps(prompt) for prompt in prompts(data.test, ids, solved, steps)]
    write_text(options.out, "\n".join(lines) + "\n")


if __name__ == "__main__":
    run(main)
