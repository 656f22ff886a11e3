"""Replicas, entities, the best epoch and checkpoints."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

from clutrr_jax.models import MODELS
from clutrr_jax.training.checkpoints import Checkpoints
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.steps import ENTITY_POLICIES, build
from generator.errors import InputError

TRAIN = {
    "epochs": 3,
    "batch": 32,
    "microbatches": 1,
    "matmul_dtype": "float32",
    "learning_rate": 1e-3,
    "grad_clip_norm": 5.0,
    "ema_decay": 0.999,
    "shuffle_sentences": 0.5,
    "curriculum": 0,
    "entities": "redrawn",
    "dev_fraction": 0.2,
}
SMALL = {
    "gat": {"node": 16, "heads": 2, "edge": 8, "readout": 16},
    "bilstm_mean": {"embedding": 8, "hidden": 8, "readout": 16},
}


def programs_for(name: str, small, replicas: Replicas, **changes):
    spec = MODELS[name]
    config = ConfigDict(spec.config | SMALL.get(name, {}))
    settings = ConfigDict(TRAIN | changes)
    return build(spec, config, settings, small.sizes, small.train_stories, replicas)


def train(name: str, small, replicas: Replicas, epochs: int):
    programs = programs_for(name, small, replicas)
    state = programs.init()
    for epoch in range(1, epochs + 1):
        state, _ = programs.epoch(state, epoch)
    return programs, state


def is_key(x: jax.Array) -> bool:
    return jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)


def leaves(tree) -> list[np.ndarray]:
    return [np.asarray(jax.random.key_data(x) if is_key(x) else x) for x in jax.tree.leaves(tree)]


@pytest.mark.parametrize("name", SMALL)
def test_a_replica_equals_the_same_seed_alone(name: str, small) -> None:
    """Three replicas on two devices (one is added to fill them up), and replica 1 by itself: equal
    but for rounding, since a device with a single replica runs no loop over replicas."""
    many, alone = Replicas(3, first_seed=5), Replicas(1, first_seed=6)
    programs, all_state = train(name, small, many, 2)
    alone_programs, one_state = train(name, small, alone, 2)
    for a, b in zip(leaves(all_state), leaves(one_state), strict=True):
        np.testing.assert_allclose(a[1], b[0], atol=1e-5)
    all_out = programs.predict(all_state.params, all_state.other, small.test_stories)
    one_out = alone_programs.predict(one_state.params, one_state.other, small.test_stories)
    np.testing.assert_array_equal(many.keep(all_out[0])[1], alone.keep(one_out[0])[0])
    assert len(many.keep(all_out[0])) == 3


@pytest.mark.parametrize("name", SMALL)
def test_resuming_equals_no_interruption(name: str, small, tmp_path) -> None:
    replicas = Replicas(2)
    _, undisturbed = train(name, small, replicas, 4)
    programs, half = train(name, small, replicas, 2)
    Checkpoints(tmp_path / "c").save(2, half)

    found = Checkpoints(tmp_path / "c").restore(programs.init())
    assert found is not None and found[0] == 2
    state = found[1]
    for epoch in (3, 4):
        state, _ = programs.epoch(state, epoch)
    for a, b in zip(leaves(undisturbed), leaves(state), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("policy", ENTITY_POLICIES)
def test_the_vectors_of_entities_are_trained_if_and_only_if_asked(
    name: str, policy: str, small
) -> None:
    programs = programs_for(name, small, Replicas(1), entities=policy)

    def vectors(state) -> np.ndarray:
        tables = [
            value
            for path, value in jax.tree_util.tree_leaves_with_path((state.params, state.other))
            if "entity" in jax.tree_util.keystr(path)
        ]
        assert len(tables) == 1
        return np.asarray(tables[0])

    state = programs.init()
    before = vectors(state)
    state, _ = programs.epoch(state, 1)
    assert (vectors(state) != before).any() == (policy == "learned")


def test_an_unknown_policy_is_refused(small) -> None:
    with pytest.raises(InputError, match=r'train.entities "random": expected one of fixed'):
        programs_for("gat", small, Replicas(1), entities="random")


def test_the_best_epoch_is_kept(small) -> None:
    programs = programs_for("gat", small, Replicas(1))
    state, best = programs.init(), (-1.0, 0)
    for epoch in range(1, 8):
        state, metrics = programs.epoch(state, epoch)
        accuracy = float(metrics.dev_accuracy[0])
        if accuracy >= best[0]:
            best, kept = (accuracy, epoch), leaves(state.average)
    assert (float(state.best_accuracy[0]), int(state.best_epoch[0])) == best
    for a, b in zip(kept, leaves(state.best_params), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_replica_that_diverges_stops_as_it_was_and_the_others_go_on(small) -> None:
    replicas = Replicas(2)
    programs, undisturbed = train("gat", small, replicas, 3)
    _, state = train("gat", small, replicas, 1)
    state = state._replace(params=jax.tree.map(lambda p: p.at[1].mul(1e30), state.params))
    before = leaves(state)
    for epoch in (2, 3):
        state, metrics = programs.epoch(state, epoch)
        assert np.isfinite(np.asarray(metrics.loss)).tolist() == [True, False]
    assert np.asarray(state.stopped).tolist() == [0, 2]
    unstopped = state._replace(stopped=undisturbed.stopped)
    for whole, a, b in zip(leaves(undisturbed), before, leaves(unstopped), strict=True):
        np.testing.assert_array_equal(b[0], whole[0])
        np.testing.assert_array_equal(b[1], a[1])


def test_predictions_do_not_depend_on_the_stories_beside(small) -> None:
    """Every test story gets its own answer: a subset of the tests gets the same ones."""
    from clutrr_jax.data.arrays import StoryArrays

    programs, state = train("gat", small, Replicas(1), 1)
    test = small.test_stories
    everything, _ = programs.predict(state.params, state.other, test)
    rows = np.array([70, 3, 41])
    per_story = {"node_start", "n_node", "edge_start", "n_edge", "token_start", "n_token",
                 "query", "target", "clause_length"}  # fmt: skip
    some = StoryArrays(*(x[rows] if f in per_story else x for f, x in test._asdict().items()))
    part, _ = programs.predict(state.params, state.other, some)
    np.testing.assert_array_equal(np.asarray(everything)[0, rows], np.asarray(part)[0])


def test_nothing_to_restore(tmp_path, small) -> None:
    programs = programs_for("gat", small, Replicas(1))
    assert Checkpoints(tmp_path / "none").restore(programs.init()) is None


def test_a_checkpoint_of_another_configuration_is_refused(small, tmp_path) -> None:
    Checkpoints(tmp_path / "c").save(1, programs_for("gat", small, Replicas(1)).init())
    other = programs_for("gat", small, Replicas(2)).init()
    with pytest.raises(InputError, match="checkpoint of another configuration"):
        Checkpoints(tmp_path / "c").restore(other)


def test_a_damaged_checkpoint_falls_back_to_the_one_before(small, tmp_path) -> None:
    programs = programs_for("gat", small, Replicas(1))
    state, checkpoints = programs.init(), Checkpoints(tmp_path / "c")
    for epoch in (1, 2):
        state, _ = programs.epoch(state, epoch)
        checkpoints.save(epoch, state)
    for file in (tmp_path / "c" / "2" / "default").rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    found = Checkpoints(tmp_path / "c").restore(programs.init())
    assert found is not None and found[0] == 1
    for file in (tmp_path / "c" / "1" / "default").rglob("*"):
        if file.is_file():
            file.write_bytes(b"")
    with pytest.raises(InputError, match="no checkpoint can be read"):
        Checkpoints(tmp_path / "c").restore(programs.init())


def test_a_curriculum_starts_with_the_shortest_clauses_alone(small) -> None:
    """What the long stories answer matters once its epochs are over, and not before."""
    stories = small.train_stories
    long = np.asarray(stories.clause_length) > 2
    assert long.any() and not long.all()
    wrong = stories._replace(target=(stories.target + long) % small.sizes.relations)
    first, second = [], []
    for given in (stories, wrong):
        programs = programs_for(
            "gat", replace(small, train_stories=given), Replicas(1), curriculum=1
        )
        state, _ = programs.epoch(programs.init(), 1)
        first.append(leaves(state.params))
        second.append(leaves(programs.epoch(state, 2)[0].params))
    for a, b in zip(*first, strict=True):
        np.testing.assert_array_equal(a, b)
    assert any((a != b).any() for a, b in zip(*second, strict=True))
    assert any(
        (a != b).any() for a, b in zip(first[0], leaves(programs.init().params), strict=True)
    )


def test_a_batch_that_a_curriculum_leaves_empty_is_no_step(small) -> None:
    """With a story to a batch there are as many steps as stories that are seen."""
    stories = small.train_stories
    short = np.asarray(stories.clause_length) == 2
    programs = programs_for("gat", small, Replicas(1), curriculum=1, batch=1, dev=0.0)
    state, _ = programs.epoch(programs.init(), 1)
    steps = [x for x in jax.tree.leaves(state.optimizer) if x.dtype == np.int32]
    assert [int(x[0]) for x in steps] == [short.sum()] and 0 < short.sum() < len(short)
