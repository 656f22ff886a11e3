"""Test stories as prompts for a language model, with solved examples and their proofs in words."""

import re
from collections.abc import Iterator

import numpy as np

from clutrr_jax.data.records import Records, tasks
from clutrr_jax.evaluation.proofs import prove_label
from generator.errors import InputError
from generator.kinship import RELATION_OF, RELATIONS
from generator.prover import Fact, Step

_TASK = (
    "Read the story about a family and say how the two people of the question are related. The "
    f"answer is one of: {', '.join(sorted(RELATIONS))}."
)
_DIRECT = 'End with a line "Answer: " and that one word.'
_STEPS = "Go step by step, from the facts of the story to the answer. " + _DIRECT


def sentences(records: Records, story: int, proof: list[Step]) -> str:
    """A proof of `prove_label` in words."""
    start = records.node_start[story]

    def say(fact: Fact) -> str:
        x, y = start + fact.x, start + fact.y
        relation = RELATIONS[RELATION_OF[fact.relation, records.genders[y]]]
        return f"{records.names[y]} is the {relation} of {records.names[x]}"

    if not proof:
        x, y = (records.names[start + person] for person in records.query[story])
        return f"The story says what {y} is to {x}."
    return " ".join(
        f"{say(step.first)} and {say(step.second)}, so {say(step.head)}." for step in proof
    )


def question(records: Records, story: int) -> str:
    """A story without its brackets, and its question."""
    x, y = (records.names[records.node_start[story] + person] for person in records.query[story])
    plain = re.sub(r"\[([^\[\]]+)\]", r"\1", records.stories[story])
    return f"Story: {plain}\nQuestion: What is {y} to {x}?"


def examples(train: Records, shots: int, seed: int, steps: bool) -> list[str]:
    """Solved training stories, sampled without replacement from those whose label has a proof.

    Args:
      train: the training records.
      shots: number of examples.
      seed: random seed.
      steps: whether to include the proof.
    Raises:
      InputError: too few training rows have a proof.
    """
    found: list[str] = []
    for story in np.random.default_rng(seed).permutation(len(train)).tolist():
        if len(found) == shots:
            break
        proof = prove_label(train, story)
        if proof is not None:
            thoughts = f"{sentences(train, story, proof)}\n" if steps else ""
            answer = RELATIONS[train.target[story]]
            found.append(f"{question(train, story)}\n{thoughts}Answer: {answer}")
    if len(found) < shots:
        raise InputError(
            f"--shots {shots}: expected at most {len(found)}, the number of training rows with a "
            "proof"
        )
    return found


def prompts(test: Records, ids: list[str], solved: list[str], steps: bool) -> Iterator[dict]:
    """Prompts of all test stories as JSON objects, task by task.

    Args:
      test: the test records.
      ids: ids of the test stories.
      solved: examples that precede the question, see `examples`.
      steps: whether to ask for step-by-step reasoning.
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
