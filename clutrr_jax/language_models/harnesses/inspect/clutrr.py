"""CLUTRR in inspect_ai: `inspect eval clutrr.py --model PROVIDER/MODEL`.

Written by `python -m clutrr_jax.language_models export`, with prompts.jsonl, answers.py and
what that imports. An answer is mapped to a relation by the rules in answers.py.
"""

from pathlib import Path
from typing import Any

from answers import to_relation
from inspect_ai import Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.model import GenerateConfig
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
from inspect_ai.solver import TaskState, generate

MAX_TOKENS = 8192


@task
def clutrr() -> Task:
    """All test stories; accuracy and standard error of all stories and per task T.K."""
    prompts = Path(__file__).with_name("prompts.jsonl")
    return Task(
        dataset=json_dataset(str(prompts), to_sample, name="clutrr"),
        solver=generate(),
        scorer=relation(),
        config=GenerateConfig(max_tokens=MAX_TOKENS),
    )


def to_sample(row: dict[str, Any]) -> Sample:
    """Sample of one line of prompts.jsonl."""
    metadata = {name: row[name] for name in ("task", "k", "choices", "query", "names")}
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
        about = state.metadata
        relations = tuple(about["choices"])
        answer = to_relation(state.output.completion, relations, about["query"], about["names"])
        value = CORRECT if answer == target.text else INCORRECT
        return Score(value=value, answer=answer, explanation=state.output.completion)

    return score
