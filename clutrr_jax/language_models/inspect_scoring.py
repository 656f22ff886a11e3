"""Samples and scorer of the task of inspect_ai. Its exports include a copy of this file."""

from typing import Any

from inspect_ai.dataset import Sample
from inspect_ai.scorer import (
    CORRECT,
    INCORRECT,
    Score,
    Scorer,
    Target,
    accuracy,
    grouped,
    scorer,
    stderr,
)
from inspect_ai.solver import TaskState

from clutrr_jax.language_models.named_answers import stated_relation


def to_sample(row: dict[str, Any]) -> Sample:
    """Sample of one line of prompts.jsonl."""
    keys = ("task", "k", "algebra", "choices", "query", "names")
    metadata = {name: row[name] for name in keys}
    return Sample(id=row["id"], input=row["prompt"], target=row["target"], metadata=metadata)


@scorer(
    metrics=[
        accuracy(),
        stderr(),
        grouped(accuracy(), "task", all=False, name_template="accuracy {group_name}"),
        grouped(stderr(), "task", all=False, name_template="stderr {group_name}"),
    ]
)
def relation() -> Scorer:
    """Equality of the stated relation and the label."""

    async def score(state: TaskState, target: Target) -> Score:
        answer = stated_relation(state.output.completion, state.metadata)
        value = CORRECT if answer == target.text else INCORRECT
        return Score(value=value, answer=answer, explanation=state.output.completion)

    return score
