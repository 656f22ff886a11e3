"""CLUTRR in JAX: data, models, training and evaluation.

    import clutrr_jax

    dataset = clutrr_jax.load("data_089907f8.zip")
    run = clutrr_jax.train(["gat", "prover"], dataset, replicas=2)
    run.plot()

`help(clutrr_jax.train)` describes a function.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clutrr_jax.api import *  # noqa: F403

__all__ = [  # noqa: F405 (as in `clutrr_jax.api`)
    "MODELS", "RELATIONS", "Answer", "Dataset", "Evaluation", "InputError", "Model", "Story",
    "TokenBatch", "Trained", "batches", "evaluate", "generate", "load", "load_model", "register",
    "reward", "targets", "train",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # Imported on first use: modules that need no JAX stay usable without it.
    if name in __all__:
        return getattr(import_module("clutrr_jax.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
