"""Laws of training: replicas, resumption, model selection, divergence."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import StoryArrays
from clutrr_jax.evaluation.predict import per_story, relation_logits
from clutrr_jax.settings import ENTITY_POLICIES, SELECTIONS
from clutrr_jax.training.checkpoints import Checkpoints
from clutrr_jax.training.loop import train_model
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.steps import TrainState, select_epoch
from generator.relations.kinship import NUM_RELATIONS
from tests.training.small import NAMES, leaves, make_trainer, train


@pytest.mark.parametrize("name", NAMES)
def test_replica_equals_same_seed_alone(name: str, small) -> None:
    """Two replicas on four devices, and replica 1 by itself."""
    many, alone = Replicas(2, first_seed=5), Replicas(1, first_seed=6)
    trainer, all_states = train(name, small, many, 2)
    alone_trainer, one_state = train(name, small, alone, 2)
    for a, b in zip(leaves(all_states), leaves(one_state), strict=True):
        np.testing.assert_allclose(a[1], b[0], atol=1e-5)
    test = small.test_stories
    all_found, _ = trainer.predict(all_states.params, all_states.buffers, test)
    one_found, _ = alone_trainer.predict(one_state.params, one_state.buffers, test)
    np.testing.assert_array_equal(all_found[1], one_found[0])
    assert len(all_found) == 2


@pytest.mark.parametrize("name", NAMES)
def test_resumed_run_equals_uninterrupted_run(name: str, small, tmp_path) -> None:
    replicas = Replicas(2)
    trainer, whole = train(name, small, replicas, 4)
    state = trainer.init()
    for epoch in (1, 2):
        state, _ = trainer.epoch(state, epoch)
    Checkpoints(tmp_path / "c").save(2, state)
    epoch, _, state = Checkpoints(tmp_path / "c").restore(trainer.init())
    assert epoch == 2
    for epoch in (3, 4):
        state, _ = trainer.epoch(state, epoch)
    for a, b in zip(leaves(whole), leaves(state), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("policy", ENTITY_POLICIES)
def test_entity_vectors_are_trained_only_if_learned(name: str, policy: str, small) -> None:
    trainer = make_trainer(name, small, Replicas(1), entities=policy)

    def vectors(state) -> np.ndarray:
        (table,) = [
            np.asarray(value)
            for path, value in jax.tree_util.tree_leaves_with_path((state.params, state.buffers))
            if "entity" in jax.tree_util.keystr(path)
        ]
        return table

    state = trainer.init()
    before = vectors(state)
    state, _ = trainer.epoch(state, 1)
    assert (vectors(state) != before).any() == (policy == "learned")


def test_stories_of_an_epoch_are_the_train_rows_of_all_replicas(small) -> None:
    """Rows are split by number of people, and the fraction of each group is rounded."""
    trainer = make_trainer("edge_transformer", small, Replicas(2), dev_fraction=0.1)
    rows, _ = trainer.batches(1)
    assert trainer.stories_per_epoch == (rows >= 0).sum()


@pytest.mark.parametrize("selection", SELECTIONS)
def test_selected_epoch_is_the_last_or_the_latest_with_the_best_score(selection, small) -> None:
    trainer = make_trainer("gat", small, Replicas(1), selection=selection)
    state, best = trainer.init(), (-np.inf, 0)
    for epoch in range(1, 8):
        state, metrics = trainer.epoch(state, epoch)
        score = metrics["dev_accuracy"] if selection == "dev_accuracy" else -metrics["dev_loss"]
        is_best = float(score[0]) >= best[0]
        if is_best:
            best = float(score[0]), epoch
        if is_best or selection == "last":
            selected, kept = epoch, leaves(state.ema_params)
    assert (float(state.best_score[0]), int(state.best_epoch[0])) == best
    assert trainer.selected_epochs(state) == [selected]
    for a, b in zip(kept, leaves(state.tested_params), strict=True):
        np.testing.assert_array_equal(a, b)


def select(patience: int, epoch: int, scores: list[int], state: TrainState) -> TrainState:
    """State of two replicas after the selection."""
    setup: Any = SimpleNamespace(train=ConfigDict({"selection": "dev_loss"}), patience=patience)
    function = partial(select_epoch, setup, jnp.int32(epoch), 0.0)
    return jax.vmap(function)(-jnp.array(scores, jnp.float32), state)


@pytest.mark.parametrize("last", [False, True])
def test_selection_of_a_made_up_history(last: bool) -> None:
    """The latest of ties is kept, and nothing after a replica has diverged: its state stays."""
    state = TrainState(*[{"p": jnp.zeros(2)}] * 5, *[jnp.zeros(2, jnp.int32)] * 4)
    state = state._replace(best_score=jnp.full(2, -jnp.inf))
    state = state._replace(best_params=None) if last else state
    scores = [[-2, -3], [-1, -2], [-1, -1], [-4, -9]]
    for epoch, score in enumerate(scores, start=1):
        averaged = jnp.where(state.diverged_epoch > 0, state.ema_params["p"], float(epoch))
        state = state._replace(ema_params={"p": averaged})
        state = select(0, epoch, score, state)
        if epoch == 2:
            state = state._replace(diverged_epoch=jnp.array([0, 2]))
    assert state.best_epoch.tolist() == [3, 2]
    assert state.tested_params["p"].tolist() == ([4, 2] if last else [3, 2])
    assert state.best_score.tolist() == [-1, -2]


def test_stopped_replica_is_not_selected_again() -> None:
    """Its parameters do not change, but its score may, by rounding."""
    state = TrainState(*[{"p": jnp.zeros(2)}] * 5, *[jnp.zeros(2, jnp.int32)] * 4)
    state = state._replace(best_epoch=jnp.array([3, 2]), best_score=jnp.zeros(2))
    state = select(2, 5, [1, 1], state)
    assert state.best_epoch.tolist() == [5, 2] and state.best_score.tolist() == [1, 0]


def test_dev_metrics_are_those_of_the_dev_rows(small) -> None:
    trainer = make_trainer("gat", small, Replicas(2))
    state, metrics = trainer.epoch(trainer.init(), 1)
    for replica, rows in enumerate(
        np.concatenate([b.reshape(2, -1) for b in trainer.batches.dev_rows])
    ):
        rows = rows[rows >= 0]
        arrays = jax.tree.map(
            lambda a, i=replica: np.asarray(a)[i], (state.ema_params, state.buffers)
        )
        model = trainer.setup.model.evaluated(*arrays)
        output = partial(relation_logits, relations=NUM_RELATIONS)
        logits = dict(per_story(output, model, "graph", small.train_stories))
        logits = np.array([logits[row] for row in rows])
        target = np.asarray(small.train_stories.target)[rows]
        assert metrics["dev_accuracy"][replica] == np.float32(
            (logits.argmax(axis=1) == target).mean()
        )
        log_probability = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        expected = -log_probability[np.arange(len(rows)), target].mean()
        np.testing.assert_allclose(metrics["dev_loss"][replica], expected, rtol=1e-5)


def test_epochs_follow_from_steps_and_patience(small) -> None:
    steps = -(-int(len(small.train) * 0.8) // 32)  # of an epoch
    given = {"steps": 5 * steps - 1, "patience": steps + 1}
    trainer = make_trainer("gat", small, Replicas(1), epochs=None, **given)
    assert (trainer.epochs, trainer.setup.patience) == (5, 2)
    trainer = make_trainer("gat", small, Replicas(1), epochs=7, **given)
    assert (trainer.epochs, trainer.setup.patience) == (7, 0)  # never stopped early


@pytest.mark.parametrize("selection", ["last", "dev_loss"])
def test_stopped_replica_is_frozen_and_the_others_continue(selection: str, small) -> None:
    """Replica 1 has its best score in epoch 1 and stops after the next."""
    settings = {"epochs": None, "steps": 1000, "patience": 1, "selection": selection}
    trainer = make_trainer("gat", small, Replicas(2), **settings)
    assert trainer.setup.patience == 1
    free = make_trainer("gat", small, Replicas(2), epochs=5)
    state, undisturbed, averaged = trainer.init(), free.init(), []
    for epoch in range(1, 6):
        state, _ = trainer.epoch(state, epoch)
        undisturbed, _ = free.epoch(undisturbed, epoch)
        best_epoch = state.best_epoch.at[0].set(epoch)
        state = state._replace(best_epoch=best_epoch, best_score=jnp.array([0.0, 1e9]))
        assert not trainer.has_stopped(state, epoch)
        averaged.append(leaves(state.ema_params))
        if epoch == 2:
            at_stop = leaves(state.params)
    for a, b, c in zip(leaves(state.params), leaves(undisturbed.params), at_stop, strict=True):
        np.testing.assert_array_equal(a[0], b[0])
        np.testing.assert_array_equal(a[1], c[1])
    selected = 2 if selection == "last" else 1
    assert trainer.selected_epochs(state) == [5, selected]
    for a, b in zip(leaves(state.tested_params), averaged[selected - 1], strict=True):
        np.testing.assert_array_equal(a[1], b[1])
    assert trainer.has_stopped(state._replace(best_epoch=jnp.array([3, 1])), 5)
    assert trainer.has_stopped(state._replace(diverged_epoch=jnp.array([4, 0])), 5)
    assert trainer.has_stopped(state, trainer.epochs)


def test_stopped_replica_does_not_diverge(small) -> None:
    """A step from its last state would, but the state no longer changes."""
    trainer = make_trainer("gat", small, Replicas(2), epochs=None, steps=1000, patience=1)
    state = trainer.init()
    state = state._replace(
        params=jax.tree.map(lambda p: p.at[1].mul(1e30), state.params),
        best_epoch=jnp.array([3, 1]), best_score=jnp.array([1e9, 1e9]),
    )  # fmt: skip
    after, metrics = trainer.epoch(state, 4)
    assert np.asarray(after.diverged_epoch).tolist() == [0, 0]
    assert np.isfinite(metrics["loss"]).tolist() == [True, False]


def test_training_that_stopped_early_is_not_continued(small, tmp_path) -> None:
    settings = {"epochs": None, "steps": 10_000, "patience": 1, "checkpoint_minutes": 1.0}
    trainer = make_trainer("gat", small, Replicas(1), learning_rate=0.3, **settings)
    state, history = train_model("gat", trainer, trainer.init(), tmp_path)
    assert len(history) == int(state.best_epoch[0]) + 1 < trainer.epochs
    again, lines = train_model("gat", trainer, trainer.init(), tmp_path)
    assert lines == history
    for a, b in zip(leaves(state), leaves(again), strict=True):
        np.testing.assert_array_equal(a, b)


def test_diverged_replica_is_frozen_and_the_others_continue(small) -> None:
    trainer, whole = train("gat", small, Replicas(2), 3)
    state, _ = trainer.epoch(trainer.init(), 1)
    state = state._replace(params=jax.tree.map(lambda p: p.at[1].mul(1e30), state.params))
    before = leaves(state)
    for epoch in (2, 3):
        state, metrics = trainer.epoch(state, epoch)
        assert np.isfinite(metrics["loss"]).tolist() == [True, False]
    assert np.asarray(state.diverged_epoch).tolist() == [0, 2]
    assert trainer.selected_epochs(state) == [3, 1]
    state = state._replace(diverged_epoch=whole.diverged_epoch)
    for undisturbed, a, b in zip(leaves(whole), before, leaves(state), strict=True):
        np.testing.assert_array_equal(b[0], undisturbed[0])
        np.testing.assert_array_equal(b[1], a[1])


def test_prediction_does_not_depend_on_the_other_stories(small) -> None:
    trainer, state = train("gat", small, Replicas(1), 1)
    test = small.test_stories
    everything, _ = trainer.predict(state.params, state.buffers, test)
    rows = np.array([7, 3, 4])
    per_story = {"node_start", "n_node", "edge_start", "n_edge", "token_start", "n_token",
                 "query", "target"}  # fmt: skip
    some = StoryArrays(*(x[rows] if f in per_story else x for f, x in test._asdict().items()))
    part, _ = trainer.predict(state.params, state.buffers, some)
    np.testing.assert_array_equal(everything[0, rows], part[0])
