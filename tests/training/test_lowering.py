"""The programs of training and prediction lower for accelerators, on a machine that has none."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from clutrr_jax.models import MODELS
from clutrr_jax.training.loop import Trainer
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.steps import TrainState, init_state
from tests.training.small import make_trainer

REPLICAS = 2
PLATFORMS = ("cuda", "tpu")
QUICK = ("gat", "prover", "bilstm_attention")  # the others take longer to trace


class Lowered(Exception):
    """Raised instead of running a program, with its text for each platform."""


class LoweringReplicas(Replicas):
    """Vectorized replicas, as on an accelerator, whose programs are lowered instead of run."""

    def __init__(self, count: int):
        super().__init__(count)
        self.sequential = False

    def map(self, *arguments: Any, **settings: Any) -> Any:
        program = super().map(*arguments, **settings)

        def lower(*arguments: Any) -> None:
            traced = program.trace(*arguments)
            raise Lowered([traced.lower(lowering_platforms=(p,)).as_text() for p in PLATFORMS])

        return lower


def abstract_state(trainer: Trainer) -> TrainState:
    """Shapes and dtypes of the state of all replicas."""
    init = partial(init_state, trainer.setup, pretrained={})
    return jax.eval_shape(jax.vmap(init), jnp.arange(REPLICAS))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in MODELS],
)
def test_programs_lower_for_accelerators(name: str, small_for) -> None:
    data = small_for(name)
    trainer = make_trainer(name, data, LoweringReplicas(REPLICAS))
    state = abstract_state(trainer)
    with pytest.raises(Lowered) as train:
        trainer.epoch(state, 1)
    with pytest.raises(Lowered) as prediction:
        trainer.predict(state.params, state.buffers, data.test_stories)
    for text in (*train.value.args[0], *prediction.value.args[0]):
        assert text.startswith("module")
