"""CLUTRR in inspect_ai: `inspect eval clutrr.py --model PROVIDER/MODEL`.

Written by `python -m clutrr_jax.language_models export`, with prompts.jsonl, answers.py and
what that imports. An answer is mapped to a relation by the rules in answers.py.
"""

from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import generate
from inspect_scoring import relation, to_sample

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
