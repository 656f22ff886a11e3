"""Test stories as prompts for a language model, with solved examples and their proofs in words."""

from collections.abc import Iterable, Iterator
from typing import Any

from clutrr_jax.data.records import Records, Story, columns, story_ids, tasks
from clutrr_jax.evaluation.proofs import in_sentences, prove_label
from clutrr_jax.streams import Stream, numpy_rng
from generator.errors import InputError
from generator.relations.algebra import Algebra
from generator.relations.algebras import definitions
from generator.relations.deduction import Fact, Step
from generator.stories.text import NAME

# Published columns by which `load` reads the file of prompts, besides id, story, query and target.
_COLUMNS = ("task_name", "story_edges", "edge_types", "query_edge", "genders")
_DIRECT = 'End with a line "Answer: " and that one word.'
_STEPS = "Go step by step, from the facts of the story to the answer. " + _DIRECT


def choices(algebra: Algebra) -> list[str]:
    """The possible answers."""
    return sorted(algebra.relations) if algebra.is_kinship else list(algebra.relations)


def task(algebra: Algebra) -> str:
    """The first sentences of a prompt."""
    possible = f"The answer is one of: {', '.join(choices(algebra))}."
    if algebra.is_kinship:
        opening = "Read the story about a family and say how the two people of the question are"
        return f"{opening} related. {possible}"
    lines = [f"X {name} Y: {words}" for name, words in definitions(algebra).items()]
    opening = "Read how elements are related to each other."
    asked = 'The question "What is X to Y?" asks for the relation that the facts leave for X and Y.'
    return "\n".join([opening, *lines, f"{asked} {possible}"])


def _element(algebra: Algebra, name: str) -> str:
    """An element of a fact in words: "3 < 4" would be about numbers."""
    return f"x{name}" if name.isdecimal() and not algebra.is_kinship else name


def sentences(records: Records, story: int, proof: list[Step]) -> list[str]:
    """The steps of a proof of `prove_label` in words, at least one."""
    start, algebra = records.node_start[story], records.algebra

    def say(fact: Fact) -> str:
        x, y = start + fact.x, start + fact.y
        relation = algebra.coarse.in_words(algebra.relations, fact.relation, records.genders[y])
        first, second = (_element(algebra, records.names[one]) for one in (x, y))
        return algebra.sentence(first, relation, second)

    if not proof:
        x, y = records.story(story).query
        return [f"The story says what {y} is to {x}."]
    return in_sentences(proof, say)


def text(story: Story) -> str:
    """A story without the brackets around its names."""
    return NAME.sub(r"\1", story.text)


def question(records: Records, story: int) -> str:
    """A story, or its facts as lines, and its question."""
    told, algebra = records.story(story), records.algebra
    if told.text.strip() or algebra.is_kinship:
        return f"Story: {text(told)}\nQuestion: {algebra.question(*told.query)}"
    facts = [
        algebra.sentence(_element(algebra, x), relation or "is related to", _element(algebra, y))
        for x, relation, y in told.facts
    ]
    asked = algebra.question(*(_element(algebra, name) for name in told.query))
    return "\n".join(["Facts:", *facts, f"Question: {asked}"])


def examples(train: Records, shots: int, seed: int, steps: bool) -> list[str]:
    """Solved training stories, with their proof if `steps`, sampled without replacement from those
    whose label has a proof, if the algebra has rules only. Raises InputError if there are too few.
    """
    found: list[str] = []
    for story in numpy_rng(Stream.EXAMPLES, seed).permutation(len(train)).tolist():
        if len(found) == shots:
            break
        proof = prove_label(train, story) if train.algebra.has_rules_only else []
        if proof is not None:
            thoughts = " ".join(sentences(train, story, proof)) + "\n" if steps else ""
            answer = train.relation_name(train.target[story])
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
    ids, cells, algebra = story_ids(test), columns(test), test.algebra
    opening = "\n\n".join([f"{task(algebra)} {_STEPS if steps else _DIRECT}", *solved])
    task_of = {story: name for name, found in tasks(test) for story in found.tolist()}
    for story in stories:
        told = test.story(story)
        proof = prove_label(test, story) if algebra.has_rules_only else None
        yield {
            "id": ids[story],
            "task": task_of[story],
            "k": told.k or None,
            "story": text(told),
            "query": told.query,
            "names": told.people,
            "algebra": algebra.name,
            "choices": choices(algebra),
            "prompt": f"{opening}\n\n{question(test, story)}\n",
            "target": told.target,
            "edges": [(x, relation or None, y) for x, relation, y in told.facts],
            "task_split": "test",
            **{name: cells[name][story] for name in _COLUMNS if name in cells},
        } | ({} if proof is None else {"proof": sentences(test, story, proof)})
