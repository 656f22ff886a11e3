"""Test stories as prompts for a language model, with solved examples and their proofs in words."""

from collections.abc import Iterable, Iterator
from typing import Any

from clutrr_jax.data.records import Records, Story, columns, story_ids
from clutrr_jax.evaluation.proofs import in_sentences, prove_label
from clutrr_jax.streams import Stream, numpy_rng
from generator.errors import InputError
from generator.relations.deduction import Fact, Step
from generator.relations.kinship import RELATIONS
from generator.stories.text import NAME

CHOICES = sorted(RELATIONS)
# Published columns by which `load` reads the file of prompts, besides id, story, query and target.
_COLUMNS = ("task_name", "story_edges", "edge_types", "query_edge", "genders")
_TASK = (
    "Read the story about a family and say how the two people of the question are related. The "
    f"answer is one of: {', '.join(CHOICES)}."
)
_DIRECT = 'End with a line "Answer: " and that one word.'
_STEPS = "Go step by step, from the facts of the story to the answer. " + _DIRECT


def sentences(records: Records, story: int, proof: list[Step]) -> list[str]:
    """The steps of a proof of `prove_label` in words, at least one."""
    start = records.node_start[story]

    def say(fact: Fact) -> str:
        x, y = start + fact.x, start + fact.y
        view, names = records.algebra.coarse, records.algebra.relations
        relation = view.in_words(names, fact.relation, records.genders[y])
        return records.algebra.sentence(records.names[x], relation, records.names[y])

    if not proof:
        x, y = records.story(story).query
        return [f"The story says what {y} is to {x}."]
    return in_sentences(proof, say)


def text(story: Story) -> str:
    """A story without the brackets around its names."""
    return NAME.sub(r"\1", story.text)


def question(records: Records, story: int) -> str:
    """A story and its question."""
    told = records.story(story)
    return f"Story: {text(told)}\nQuestion: {records.algebra.question(*told.query)}"


def examples(train: Records, shots: int, seed: int, steps: bool) -> list[str]:
    """Solved training stories, with their proof if `steps`, sampled without replacement from those
    whose label has a proof. Raises InputError if there are too few."""
    found: list[str] = []
    for story in numpy_rng(Stream.EXAMPLES, seed).permutation(len(train)).tolist():
        if len(found) == shots:
            break
        proof = prove_label(train, story)
        if proof is not None:
            thoughts = " ".join(sentences(train, story, proof)) + "\n" if steps else ""
            answer = RELATIONS[train.target[story]]
            found.append(f"{question(train, story)}\n{thoughts}Answer: {answer}")
    if len(found) < shots:
        raise InputError(
            f"--shots {shots}: expected at most {len(found)}, the number of training rows that "
            "have a proof and are no test stories"
        )
    return found


def prompts(
    test: Records, stories: Iterable[int], solved: list[str], steps: bool
) -> Iterator[dict[str, Any]]:
    """Prompts of test stories as JSON objects, after the solved `examples`, with a request for
    steps, and with a proof if the label follows from the facts."""
    ids, cells = story_ids(test), columns(test)
    opening = "\n\n".join([f"{_TASK} {_STEPS if steps else _DIRECT}", *solved])
    for story in stories:
        told, proof = test.story(story), prove_label(test, story)
        yield {
            "id": ids[story],
            "task": f"{test.task[story]}.{told.k}",
            "k": told.k or None,
            "story": text(told),
            "query": told.query,
            "names": told.people,
            "choices": CHOICES,
            "prompt": f"{opening}\n\n{question(test, story)}\n",
            "target": told.target,
            "edges": [(x, relation or None, y) for x, relation, y in told.facts],
            "task_split": "test",
            **{name: cells[name][story] for name in _COLUMNS if name in cells},
        } | ({} if proof is None else {"proof": sentences(test, story, proof)})
