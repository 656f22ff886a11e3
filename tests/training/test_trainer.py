"""Laws of training: replicas, resumption, model selection, divergence, curriculum."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from clutrr_jax.data.arrays import StoryArrays
from clutrr_jax.training.checkpoints import Checkpoints
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.steps import ENTITY_POLICIES
from generator.errors import InputError
from tests.training.small import SMALL, leaves, make_trainer, train


@pytest.mark.parametrize("name", ["gat", pytest.param("bilstm_mean", marks=pytest.mark.slow)])
def test_replica_equals_same_seed_alone(name: str, small) -> None:
    """Three replicas on two devices (a fourth fills them up), and replica 1 by itself."""
    many, alone = Replicas(3, first_seed=5), Replicas(1, first_seed=6)
    trainer, all_states = train(name, small, many, 2)
    alone_trainer, one_state = train(name, small, alone, 2)
    for a, b in zip(leaves(all_states), leaves(one_state), strict=True):
        np.testing.assert_allclose(a[1], b[0], atol=1e-5)
    test = small.test_stories
    all_found, _ = trainer.predict(all_states.params, all_states.buffers, test)
    one_found, _ = alone_trainer.predict(one_state.params, one_state.buffers, test)
    np.testing.assert_array_equal(all_found[1], one_found[0])
    assert len(all_found) == 3


@pytest.mark.parametrize("name", SMALL)
def test_resumed_run_equals_uninterrupted_run(name: str, small, tmp_path) -> None:
    replicas = Replicas(2)
    trainer, whole = train(name, small, replicas, 4)
    state = trainer.init()
    for epoch in (1, 2):
        state, _ = trainer.epoch(state, epoch)
    Checkpoints(tmp_path / "c").save(2, state)
    restored = Checkpoints(tmp_path / "c").restore(trainer.init())
    assert restored is not None and restored[0] == 2
    state = restored[1]
    for epoch in (3, 4):
        state, _ = trainer.epoch(state, epoch)
    for a, b in zip(leaves(whole), leaves(state), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", SMALL)
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


def test_unknown_entity_policy_is_refused(small) -> None:
    with pytest.raises(InputError, match=r'train.entities "random": expected one of fixed'):
        make_trainer("gat", small, Replicas(1), entities="random")


def test_best_epoch_is_the_latest_with_the_best_dev_accuracy(small) -> None:
    trainer = make_trainer("gat", small, Replicas(1))
    state, best = trainer.init(), (-1.0, 0)
    for epoch in range(1, 8):
        state, metrics = trainer.epoch(state, epoch)
        accuracy = float(metrics.dev_accuracy[0])
        if accuracy >= best[0]:
            best, kept = (accuracy, epoch), leaves(state.ema_params)
    assert (float(state.best_accuracy[0]), int(state.best_epoch[0])) == best
    for a, b in zip(kept, leaves(state.best_params), strict=True):
        np.testing.assert_array_equal(a, b)


def test_diverged_replica_is_frozen_and_the_others_continue(small) -> None:
    trainer, whole = train("gat", small, Replicas(2), 3)
    state, _ = trainer.epoch(trainer.init(), 1)
    state = state._replace(params=jax.tree.map(lambda p: p.at[1].mul(1e30), state.params))
    before = leaves(state)
    for epoch in (2, 3):
        state, metrics = trainer.epoch(state, epoch)
        assert np.isfinite(metrics.loss).tolist() == [True, False]
    assert np.asarray(state.diverged_epoch).tolist() == [0, 2]
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
                 "query", "target", "clause_length"}  # fmt: skip
    some = StoryArrays(*(x[rows] if f in per_story else x for f, x in test._asdict().items()))
    part, _ = trainer.predict(state.params, state.buffers, some)
    np.testing.assert_array_equal(everything[0, rows], part[0])


def test_curriculum_starts_with_the_shortest_clauses(small) -> None:
    """The labels of longer stories matter after the first epoch, and not before."""
    stories = small.train_stories
    long = np.asarray(stories.clause_length) > 2
    assert long.any() and not long.all()
    wrong = stories._replace(target=(stories.target + long) % small.sizes.relations)
    first, second = [], []
    for given in (stories, wrong):
        data = replace(small, train_stories=given)
        trainer = make_trainer("gat", data, Replicas(1), curriculum=1)
        initial = leaves(trainer.init().params)
        state, _ = trainer.epoch(trainer.init(), 1)
        first.append(leaves(state.params))
        second.append(leaves(trainer.epoch(state, 2)[0].params))
    for a, b in zip(*first, strict=True):
        np.testing.assert_array_equal(a, b)
    assert any((a != b).any() for a, b in zip(*second, strict=True))
    assert any((a != b).any() for a, b in zip(first[0], initial, strict=True))


def test_batch_emptied_by_a_curriculum_is_no_step(small) -> None:
    """With one story per batch there are as many steps as short stories."""
    short = np.asarray(small.train_stories.clause_length) == 2
    trainer = make_trainer("gat", small, Replicas(1), curriculum=1, batch=1, dev_fraction=0.0)
    state, _ = trainer.epoch(trainer.init(), 1)
    assert 0 < short.sum() < len(short)
    assert int(state.step[0]) == short.sum()
