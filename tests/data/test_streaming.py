"""StoryArrays drawn anew for every epoch, and the process that draws them."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import StoryArrays, redraw_entities, reorder_sentences
from clutrr_jax.data.batching import InputKind, chunk, pack
from clutrr_jax.data.prepare import Prepared, prepare
from clutrr_jax.data.resample import Epochs, Layout, bank_words
from clutrr_jax.data.streaming import Streaming
from clutrr_jax.data.vocabulary import FIRST_ENTITY, PAD, Vocabulary
from clutrr_jax.models import MODELS
from clutrr_jax.training.checkpoints import Checkpoints
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.steps import build
from experiments import workshop_table1
from experiments.grid import definition
from generator.clause import clause_code
from generator.clause_sets import allowed_clauses
from generator.config import Config, parse_tasks
from generator.errors import InputError
from generator.hold_out import split_bank
from generator.paraphrases.load import load_bank
from generator.write import write_dataset
from tests.training.test_steps import SMALL, TRAIN, leaves

ROOT = Path(__file__).parents[2]
CONFIG = Config(
    train=parse_tasks("1.2,1.3,7.3,5.2"), test=parse_tasks("1.2,1.4"), train_rows=40, test_rows=5
)
KINDS: tuple[InputKind, ...] = ("graph", "pairs", "tokens")
BATCH = 32


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Prepared:
    folder = tmp_path_factory.mktemp("fresh")
    write_dataset(CONFIG, folder)
    return prepare(folder, CONFIG)


def stream(kind: InputKind, data: Prepared) -> Streaming:
    return Streaming(kind, CONFIG, data.train_stories, data.sizes.entities, BATCH)


@pytest.fixture(scope="module", params=KINDS)
def streaming(request, data) -> Iterator[tuple[InputKind, Streaming]]:
    with closing(stream(request.param, data)) as opened:
        yield request.param, opened


def epochs(limits: list[int] | None, names: int = 99) -> Epochs:
    """Those of `CONFIG`, with more room than is needed."""
    return Epochs(CONFIG, 20, Layout(1000, 1000, 40_000, limits, names))


def told(stories: StoryArrays, count: int) -> list[tuple]:
    """What the first `count` stories say, whatever their entities; a person's token is -1 - i."""
    s = StoryArrays(*(None if x is None else np.asarray(x) for x in stories))
    found = []
    for row in range(count):
        node = slice(s.node_start[row], s.node_start[row] + s.n_node[row])
        edge = slice(s.edge_start[row], s.edge_start[row] + s.n_edge[row])
        token = slice(s.token_start[row], s.token_start[row] + s.n_token[row])
        person = {FIRST_ENTITY + e: -1 - i for i, e in enumerate(s.entity[node].tolist())}
        assert len(person) == s.n_node[row]
        found.append((
            tuple(person.get(t, t) for t in s.tokens[token].tolist()),
            tuple(zip(s.senders[edge].tolist(), s.receivers[edge].tolist(), strict=True)),
            tuple(s.relation[edge].tolist()), *s.query[row].tolist(), int(s.target[row]),
            int(s.clause_length[row]), len(person),
        ))  # fmt: skip
    return found


def test_the_first_draw_is_what_the_files_hold(data) -> None:
    ours = told(StoryArrays(**epochs([250] * 160)(0)), 160)
    assert sorted(ours) == sorted(told(data.train_stories, 160))


def test_models_without_text_get_the_same_facts() -> None:
    with_text, without = (told(StoryArrays(**epochs(x)(3)), 160) for x in ([250] * 160, None))
    assert {s[0] for s in without} == {()}
    assert sorted(s[1:] for s in with_text) == sorted(s[1:] for s in without)


def test_an_epoch_is_the_same_whatever_was_asked_before(data) -> None:
    with closing(stream("tokens", data)) as one, closing(stream("tokens", data)) as other:
        ours = [one(number) for number in (1, 2, 3, 4)]
        theirs = {number: other(number) for number in (4, 2, 3, 1)}
    for number, stories in enumerate(ours, start=1):
        for a, b in zip(stories, theirs[number], strict=True):
            np.testing.assert_array_equal(a, b)
    for before, after in pairwise(ours):
        assert len(set(told(before, 160)) & set(told(after, 160))) < 16


def test_nothing_that_is_held_out_is_drawn() -> None:
    split = split_bank(load_bank(CONFIG), CONFIG)
    words = ["", "?", *["[]"] * 20, *bank_words(CONFIG)]

    def sentences(text: str) -> set[str]:
        plain = re.sub(r"\{\d\}|\[\]", " Z ", text.lower())
        return {re.sub(r"\W+", " ", part).strip() for part in re.split(r"[.!?]", plain)} - {""}

    train = set().union(*(sentences(t) for t in split.train.pools.texts))
    held = set().union(*(s for s in map(sentences, split.test.pools.texts) if len(s) == 1))
    tests_only = clause_code(allowed_clauses(CONFIG, "test", 3)[:, :3])
    assert len(held) > 400 and len(tests_only) > 10
    make, seen, clauses = epochs([250] * 160), set(), set()
    for number in range(1, 6):
        for story in told(StoryArrays(**make(number)), 160):
            seen |= sentences(" ".join("[]" if t < 0 else words[t] for t in story[0]))
            if story[6] == 3:
                clauses.add(story[2][:3])
    assert len(seen) > 500 and seen <= train and not seen & held
    assert len(clauses) > 100
    assert not np.isin(clause_code(np.array(sorted(clauses))), tests_only).any()


def test_every_story_stands_in_one_batch_that_has_room_for_it(streaming, data) -> None:
    kind, stream = streaming
    assert sorted(np.concatenate(stream.rows).tolist()) == list(range(160))
    for number in (1, 2, 7):
        stories = stream(number)
        assert len(stories.target) == 161
        expected = told(stories, 160)
        for shape, rows in zip(stream.shapes, stream.rows, strict=True):
            # The largest stories in one batch, too.
            by_size = rows[np.argsort(-np.asarray(stories.n_node)[rows], kind="stable")]
            for some in [*chunk(rows, BATCH), *chunk(by_size, BATCH)]:
                batch = pack(stories, some, shape)
                count = int((some >= 0).sum())
                if kind == "tokens":
                    sizes = np.asarray(batch.mask).sum(axis=1)[:count]
                    assert sizes.tolist() == [len(expected[row][0]) for row in some[:count]]
                    assert not (np.asarray(batch.tokens)[np.asarray(batch.mask)] == PAD).any()
                else:
                    sizes = np.asarray(batch.n_edge)[:count]
                    relations = np.asarray(batch.edges["relation"])[: sizes.sum()]
                    assert relations.tolist() == [
                        r for row in some[:count] for r in expected[row][2]
                    ]
                    assert np.asarray(batch.n_node)[:-1].max() <= shape.people
                    assert np.asarray(batch.n_node)[-1] >= 1


def test_padding_never_gets_into_a_story(data) -> None:
    with closing(stream("tokens", data)) as opened:
        stories = jax.tree.map(jax.numpy.asarray, opened(1))
    ends = data.sizes.sentence_ends
    moved = reorder_sentences(stories, ends, 1.0, jax.random.key(0))
    renamed = redraw_entities(moved, data.sizes.entities, jax.random.key(1))
    before, after = told(stories, 160), told(renamed, 160)
    assert [sorted(s[0]) for s in before] == [sorted(s[0]) for s in after]
    assert np.mean([a[0] != b[0] for a, b in zip(before, after, strict=True)]) > 0.5
    assert [s[1:] for s in before] == [s[1:] for s in after]


@pytest.mark.parametrize("name", SMALL)
def test_resuming_equals_no_interruption(name: str, data, tmp_path) -> None:
    spec, checkpoints = MODELS[name], Checkpoints(tmp_path / "c")
    config, settings = ConfigDict(spec.config | SMALL[name]), ConfigDict(TRAIN)

    def train(first: int) -> tuple[list[np.ndarray], list]:
        """The state after epoch 3, and the metrics of the epochs."""
        with closing(stream(spec.kind, data)) as fresh:
            programs = build(
                spec, config, settings, data.sizes, data.train_stories, Replicas(2), fresh
            )
            state, history = programs.init(), []
            if first > 1:
                epoch, state = checkpoints.restore(state)
                assert epoch == first - 1
            for epoch in range(first, 4):
                state, metrics = programs.epoch(state, epoch)
                history.append([np.asarray(x) for x in metrics])
                if first == epoch == 1:
                    checkpoints.save(1, state)
        return leaves(state), history

    whole, history = train(1)
    rest, later = train(2)
    assert np.isfinite(history).all()
    np.testing.assert_array_equal(history[1:], later)
    for a, b in zip(whole, rest, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_story_that_is_too_long_is_told_in_other_words() -> None:
    free = epochs([250] * 160)
    lengths = np.sort(free(0)["n_token"][:-1])
    tight = epochs(np.minimum(lengths + 3, lengths[-8]).tolist())
    for number in (1, 2, 3):
        a, b = free(number), tight(number)
        assert (np.sort(a["n_token"][:-1]) > tight.layout.limits).any()  # or nothing is tried
        assert (b["n_token"][:-1] <= tight.layout.limits).all()
        ours, theirs = (told(StoryArrays(**x), 160) for x in (a, b))
        assert sorted(s[1:] for s in ours) == sorted(s[1:] for s in theirs)
        assert len(set(ours) & set(theirs)) > 60  # the others are as they were


def test_a_story_of_too_many_names_is_told_in_other_words() -> None:
    def most_names(arrays: dict[str, np.ndarray]) -> int:
        is_name = (arrays["tokens"] >= FIRST_ENTITY) & (arrays["tokens"] < FIRST_ENTITY + 20)
        starts = zip(arrays["token_start"][:-1], arrays["n_token"][:-1], strict=True)
        return max(is_name[start : start + size].sum() for start, size in starts)

    free = epochs([250] * 160)
    most = most_names(free(1))
    assert most_names(epochs([250] * 160, names=most)(1)) == most
    assert most_names(epochs([250] * 160, names=most - 1)(1)) == most - 1


def test_stories_that_never_fit_are_one_line() -> None:
    with pytest.raises(InputError, match="epoch 1: 160 stories are longer, or name"):
        epochs([3] * 160)(1)


def test_a_process_that_has_ended_is_told_of(data) -> None:
    with closing(stream("graph", data)) as opened:
        opened(1)
        opened._process.kill()
        with pytest.raises(InputError, match=r"has ended \(exit code -9\); the same command goes"):
            for number in range(2, 10):
                opened(number)


def test_what_cannot_be_generated_is_told_of(data) -> None:
    config = replace(CONFIG, train=parse_tasks("1.25"), train_rows=160, max_levels=2)
    with (
        closing(Streaming("graph", config, data.train_stories, 30, BATCH)) as opened,
        pytest.raises(InputError, match=r"epoch 1: no stories can be generated: task 1\.25: 0 of"),
    ):
        opened(1)


def test_the_process_needs_no_jax() -> None:
    program = (
        "import sys, clutrr_jax.data.fresh\n"
        "print(sorted({'jax', 'flax', 'absl'} & {name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("end", ["signal.SIGKILL", "signal.SIGTERM", "signal.SIGINT"])
def test_however_a_run_ends_its_process_ends(end: str, tmp_path) -> None:
    write_dataset(CONFIG, tmp_path)
    program = (
        "import os, signal\n"
        "from test_streaming import CONFIG, prepare, stream\n"
        f"data = prepare({str(tmp_path)!r}, CONFIG)\n"
        "opened = stream('tokens', data)\n"
        "opened(1)\n"
        "print(opened._process.pid, flush=True)\n"
        # What is started in the background may have been told to ignore Ctrl-C.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"os.kill(os.getpid(), {end})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT / "tests", capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])},
    )  # fmt: skip
    assert done.returncode != 0 and done.stdout.strip(), done.stderr
    proc = Path("/proc") / done.stdout.strip()
    if not proc.parent.joinpath("self").exists():
        pytest.skip("no /proc: it is not known which processes run")
    until = time.monotonic() + 60
    while proc.exists() and proc.joinpath("stat").read_text().split()[2] != "Z":
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_grid_draws_anew_for_each_replica() -> None:
    from experiments import figure5

    config = figure5.get_config()
    config.data, config.scale = "generate", "smoke"
    found = definition.cells(config)
    assert {cell.config.data for cell in found} == {"generate"}
    assert {cell.config.train.replicas for cell in found} == {1}
    config = workshop_table1.get_config()
    config.data = "generate"
    with pytest.raises(InputError, match="workshop_table1 has a generator of its own"):
        definition.cells(config)


def test_vocabulary_of_the_bank(data) -> None:
    words = bank_words(CONFIG)
    assert data.sizes.tokens == Vocabulary(words, data.sizes.entities).num_tokens
    for story in data.train.stories:
        for word in re.findall(r"[a-z]{4,}", re.sub(r"\[\w+\]", "", story)):
            assert any(word in known for known in words)
