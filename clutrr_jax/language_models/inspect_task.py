"""The task of inspect_ai that the installed package has: `inspect eval clutrr_jax/clutrr`."""

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import generate

from clutrr_jax.data.dataset import load
from clutrr_jax.language_models.export import DEFAULT_TOKENS, prompt_rows
from clutrr_jax.language_models.inspect_scoring import relation, to_sample


@task
def clutrr(
    data: str = "clutrr-v1/gen23",
    style: str = "zero-shot",
    shots: int | None = None,
    seed: int = 0,
    per_task: int | None = None,
    algebra: str | None = None,
) -> Task:
    """Test stories of a data set; accuracy and standard error of all stories and per task T.K.

    Args:
      data: a name such as clutrr-v1/gen23, or a path.
      style: zero-shot, few-shot or chain-of-thought.
      shots: number of examples.
      seed: of the choice of examples.
      per_task: number of stories of each task T.K, by default all.
      algebra: of the relations, if the data do not name theirs.
    """
    rows = prompt_rows(load(data, algebra), style, shots, seed, per_task)
    return Task(
        dataset=MemoryDataset([to_sample(row) for row in rows], name="clutrr"),
        solver=generate(),
        scorer=relation(),
        config=GenerateConfig(max_tokens=DEFAULT_TOKENS),
    )
