"""Known answers of a training step, and what changes from one epoch to the next."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from clutrr_jax.data.batching import pack
from clutrr_jax.settings import ENTITY_POLICIES
from clutrr_jax.training.loop import Trainer
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.steps import TrainState, create_optimizer, loss_fn, train_step
from tests.training.small import leaves, make_trainer

KEY = jax.random.key(0)
RATE = 0.5


@pytest.fixture(scope="module")
def trainer(small) -> Trainer:
    """GAT without dropout, for steps of plain gradient descent."""
    made = make_trainer("gat", small, Replicas(1), {"dropout": 0.0, "word_dropout": 0.0})
    made.setup = made.setup._replace(optimizer=optax.sgd(RATE))
    return made


def one_replica(trainer: Trainer, step: int = 0) -> TrainState:
    state = jax.tree.map(lambda x: jnp.asarray(x)[0], trainer.init())
    return state._replace(
        step=jnp.int32(step), opt_state=trainer.setup.optimizer.init(state.params)
    )


def step(trainer: Trainer, state: TrainState, rows: list) -> tuple[TrainState, tuple]:
    """One step on rows [devices, m, b], with the results of the first device."""

    def of_device(rows):
        return train_step(trainer.setup, trainer.stories, KEY, state, (rows, jnp.int32(0)))

    return jax.tree.map(
        lambda x: x[0], jax.jit(jax.vmap(of_device, axis_name="data"))(jnp.array(rows))
    )


@pytest.mark.parametrize(
    "rows", [[[[3, 70, -1, -1]]], [[[3, -1], [70, -1]]], [[[3, -1]], [[70, -1]]]],
    ids=["batch", "microbatches", "devices"],
)  # fmt: skip
def test_a_step_descends_the_gradient_of_the_mean_loss(rows: list, trainer) -> None:
    state = one_replica(trainer)

    def mean_loss(params):
        model = trainer.setup.model.merge(params, state.buffers, KEY)
        batch = pack(trainer.stories, jnp.array([3, 70]), trainer.setup.shapes[0])
        logits, target = model(batch)[:2], trainer.stories.target[jnp.array([3, 70])]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), target[:, None], 1).mean()

    loss, gradient = jax.jit(jax.value_and_grad(mean_loss))(state.params)
    new, (total, count) = step(trainer, state, rows)
    assert int(count) == 2
    np.testing.assert_allclose(total, 2 * loss, rtol=1e-5)
    for after, before, g in zip(
        leaves(new.params), leaves(state.params), leaves(gradient), strict=True
    ):
        np.testing.assert_allclose(after, before - RATE * g, atol=1e-6)


@pytest.mark.parametrize(("steps", "weight"), [(0, 1.0), (90, 0.1), (1_000_000, 0.001)])
def test_weight_of_a_step_in_the_average(steps: int, weight: float, trainer) -> None:
    """With `ema_decay` .999: the inverse of a tenth of the steps, plus one, at least .001."""
    state = one_replica(trainer, steps)
    state = state._replace(ema_params=jax.tree.map(jnp.zeros_like, state.params))
    new, _ = step(trainer, state, [[[3, 70]]])
    for average, params in zip(leaves(new.ema_params), leaves(new.params), strict=True):
        np.testing.assert_allclose(average, weight * params, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize(("norm", "clipped"), [(100.0, 5.0), (3.0, 3.0)])
def test_gradients_are_clipped_to_their_norm(norm: float, clipped: float, trainer) -> None:
    """The first moment of Adam after one step is a tenth of the clipped gradient."""
    optimizer = create_optimizer(trainer.setup.train)
    params = {"a": jnp.zeros(3), "b": jnp.zeros(())}
    gradient = {"a": jnp.array([0.0, 0.6, 0.0]) * norm, "b": jnp.array(-0.8 * norm)}
    _, state = optimizer.update(gradient, optimizer.init(params), params)
    np.testing.assert_allclose(optax.tree.norm(state[1][0].mu), 0.1 * clipped, rtol=1e-5)


def test_each_key_draws_a_dropout_of_its_own(small) -> None:
    trainer = make_trainer("gat", small, Replicas(1))
    state, model = one_replica(trainer), trainer.setup.model
    batch = pack(trainer.stories, jnp.array([3, 70]), trainer.setup.shapes[0])
    losses = [
        float(loss_fn(state.params, model, state.buffers, batch, jax.random.key(seed)))
        for seed in (0, 0, 1)
    ]
    assert losses[0] == losses[1] != losses[2]


def first_losses(trainer: Trainer) -> np.ndarray:
    """Losses of two epochs that change no parameter."""
    state, losses = trainer.init(), []
    for epoch in (1, 2):
        state, metrics = trainer.epoch(state, epoch)
        losses.append(metrics["loss"][0])
    return np.array(losses)


@pytest.mark.parametrize("policy", ENTITY_POLICIES)
def test_entities_are_drawn_again_only_if_redrawn(policy: str, small) -> None:
    settings = {"learning_rate": 0.0, "entities": policy}
    losses = first_losses(make_trainer("gat", small, Replicas(1), {"dropout": 0.0}, **settings))
    assert (np.ptp(losses) > 1e-4) == (policy == "redrawn")


@pytest.mark.slow
@pytest.mark.parametrize("fraction", [0.0, 1.0])
def test_sentences_are_shuffled_only_if_asked(fraction: float, small) -> None:
    settings = {"learning_rate": 0.0, "entities": "fixed", "shuffle_sentences": fraction}
    config = {"dropout": 0.0, "word_dropout": 0.0}
    losses = first_losses(make_trainer("bilstm_mean", small, Replicas(1), config, **settings))
    assert (np.ptp(losses) > 1e-5) == (fraction == 1)
