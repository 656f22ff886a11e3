import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.errors import InputError
from generator.relations.kinship import COMPOSE, GENDER_OF, PREDICATE_OF, RELATIONS
from generator.stories.blocks import BLOCK, block
from generator.stories.clause import clause_code
from generator.stories.config import Config, Task, parse_tasks
from generator.stories.noise import NOISE_TYPES
from generator.stories.sample import is_unambiguous

TASKS = st.builds(Task, st.sampled_from(sorted(NOISE_TYPES)), st.integers(2, 6))
SHAPES = st.sampled_from([{}, {"min_child": 1, "max_child": 3, "p_marry": 0.8}])


def first(config, task, split="train", index=0):
    return block(config, split, task, index)[0]


@settings(max_examples=15)
@given(TASKS, SHAPES, st.integers(0, 20))
def test_stories_are_consistent(task, shape, seed):
    stories = first(Config(seed=seed, **shape), task)
    assert len(stories) == BLOCK
    row = np.arange(BLOCK)
    edges, relations, present = stories.edges(), stories.edge_relations(), stories.gender >= 0
    stated = relations >= 0

    # The gender of a relation is that of its second person.
    for part, relation in ((edges, relations), (stories.query()[:, None], stories.target[:, None])):
        known = relation >= 0
        gender = stories.gender[row[:, None], part[..., 1].clip(0)]
        assert (GENDER_OF[relation] == gender)[known].all()
    # The path starts at person 0, and no fact states the answer (unless the task states it).
    assert (stories.nodes[0][:, 0] == 0).all()
    for walk in stories.nodes:
        assert (walk[:, 1:] != walk[:, :-1])[walk[:, 0] >= 0].all()
    both = np.sort(edges, axis=2) == np.sort(stories.query(), axis=1)[:, None]
    assert task.type.stated or not (both.all(axis=2) & stated).any()
    assert present.sum(axis=1).max() <= Config(seed=seed, **shape).max_people(task)
    # People have ids in order of occurrence, distinct names and distinct family members.
    assert (present == (stories.name >= 0)).all() and (present == (stories.family_node >= 0)).all()
    for name in (stories.name, stories.family_node):
        ranked = np.sort(name, axis=1)
        assert not ((ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] >= 0)).any()
    for b in range(0, BLOCK, 37):
        seen = list(dict.fromkeys(np.concatenate(stories.nodes, axis=1)[b]))
        assert [p for p in seen if p >= 0] == list(range(present[b].sum()))
    # The proof follows the rules and starts at the target; the answer is unambiguous.
    head, left, right = np.moveaxis(PREDICATE_OF[stories.proof_relations], 2, 0)
    assert (COMPOSE[left, right] == head).all()
    assert (stories.proof_relations[:, 0, 0] == stories.target).all()
    assert is_unambiguous(stories).all()


def test_memory_tasks_state_the_answer():
    clean, memory, mixed = (first(Config(), Task(noise, 2)) for noise in (1, 6, 7))
    assert len(clean.nodes) == 1
    assert (memory.nodes[1] == memory.query()).all()
    assert (memory.relations[1][:, 0] == memory.target).all()
    assert 0.4 < (mixed.relations[1] >= 0).mean() < 0.6


LONG_WALKS = {"supporting_length": 5, "irrelevant_length": 2, "disconnected_length": 2}
# The people of each walk of noise that are new in the story, by its setting.
NEW_PEOPLE = {
    "supporting_length": slice(1, -1),
    "irrelevant_length": slice(1, None),
    "disconnected_length": slice(None),
}


@pytest.mark.parametrize("lengths", [{}, LONG_WALKS], ids=["released", "long"])
@pytest.mark.parametrize("noise", [t for t, noise in NOISE_TYPES.items() if noise.walks])
def test_noise_is_walks_from_the_path_to_new_people(noise, lengths):
    """A detour joins two people who follow each other; the last person has no irrelevant fact."""
    config, task = Config(**lengths), Task(noise, 4)
    path, *walks = first(config, task).nodes
    found = [(of.setting, walk) for of, walk in zip(task.type.walks, walks, strict=True)]
    for setting, walk in found:
        assert walk.shape == (BLOCK, getattr(config, setting) + 1)
    new = np.concatenate([walk[:, NEW_PEOPLE[setting]] for setting, walk in found], axis=1)
    assert new.shape[1] == config.max_people(task) - task.k - 1
    assert (new >= 0).all() and (np.diff(np.sort(new, axis=1), axis=1) > 0).all()
    assert (new[:, :, None] != path[:, None, :]).all()
    for setting, walk in found:
        if setting == "supporting_length":
            pairs = np.stack([path[:, :-1], path[:, 1:]], axis=2)
            assert (pairs == walk[:, None, [0, -1]]).all(axis=2).any(axis=1).all()
        if setting == "irrelevant_length":
            start = walk[:, :1]
            assert (path[:, :-1] == start).any(axis=1).all()
            assert set(start.flat) == set(range(task.k))


def test_targets_are_uniform_over_18_relations():
    for task in (Task(1, 2), Task(1, 3), Task(1, 8)):
        target = np.concatenate([first(Config(), task, index=i).target for i in range(4)])
        count = np.bincount(target, minlength=len(RELATIONS))
        targets = np.flatnonzero(count)
        missing = {RELATIONS[i] for i in set(range(len(RELATIONS))) - set(targets)}
        assert missing == {"husband", "wife", "brother-in-law", "sister-in-law"}
        assert abs(count[targets] / len(target) - 1 / 18).max() < 0.015


def test_clauses_of_two_facts_are_never_held_out():
    codes = clause_code(first(Config(clause_fraction=1.0), Task(1, 2)).relations[0])
    assert len(codes) == BLOCK


def test_blocks_are_deterministic_and_distinct():
    config = Config()
    a, b = (first(config, Task(1, 3), index=i) for i in (0, 1))
    assert (a.name != b.name).any()
    again = first(Config(), Task(1, 3))
    assert (a.name == again.name).all() and (a.relations[0] == again.relations[0]).all()
    other = first(Config(seed=1), Task(1, 3))
    assert (a.name != other.name).any()


def test_error_for_families_without_derivable_facts():
    config = Config(train=parse_tasks("1.9"), max_levels=2, min_child=1, max_child=1, p_marry=0.0)
    with pytest.raises(InputError, match=r"task 1\.9: "):
        first(config, Task(1, 9))
