"""The stories of a task, block by block, with as many of each kind as wanted.

A task is an endless sequence of stories in blocks of `BLOCK`; each block has its own source of
chance, made of the seed, the split, the task, the number of the block and that of the draw. So the
same seed gives the same stories however many are asked for, and whoever computes which block.

What is not allowed (held out, ambiguous, there already) is drawn again with the same target
relation, so that the relations stay uniform.
"""

from dataclasses import dataclass

import numpy as np

from generator.clause import clause_code
from generator.clause_sets import allowed_clauses, is_listable
from generator.closure import KinshipGraph, kinship_graph
from generator.config import SPLITS, Config, Task
from generator.errors import InputError
from generator.kinship import NUM_PREDICATES, NUM_RELATIONS, RELATION_OF
from generator.stories import Stories, candidates

BLOCK = 1024
_ALL_PREDICATES = np.ones(NUM_PREDICATES, bool)
_FAMILIES = 8  # random families per block; each serves 128 stories
_FEW = 16  # stories of each target relation to see if there are any
_ROUND = 4096  # most stories of one target relation to draw at once
_TRIES = 4096  # stories of a relation to draw in vain before doing without it
_TRIES_ONCE = 1024  # the same where no clause may come twice
_BUDGET = 200  # stories to draw for each wanted, where no clause may come twice
_TRIES_CLAUSE = 1 << 18  # the same where clauses are wanted: the rarest are one in 100,000


def block(
    config: Config,
    split: str,
    task: Task,
    index: int,
    tellable: np.ndarray = _ALL_PREDICATES,
    draw: int = 0,
) -> tuple[Stories, np.random.Generator]:
    """Block `index` of a task, and the source of chance for its text.

    All blocks have BLOCK stories, but for the last one where no clause may come twice. Noise facts
    are of the `tellable` predicates, bool [11]. Files hold draw 0; any other is as many stories
    anew, of which the same is held out.

    Raises:
      InputError: the settings allow no such stories, or not as many.
    """
    rng = _chance(config, split, task, index, *([draw] if draw else []))
    graph = kinship_graph(config.shape, _FAMILIES, rng)
    order = _order(config, split, task, graph, index, rng)
    stories = candidates(config, split, task, graph, tellable, order.relation[:0], rng)
    wanted = order.wanted
    kinds = len(order.relation)
    tried, gained, vain = (np.zeros(NUM_RELATIONS, np.int64) for _ in range(3))
    while True:
        have = np.bincount(order.kind_of(stories), minlength=kinds)
        need = np.bincount(wanted, minlength=kinds) - have
        if not need.any():
            break
        needed = np.bincount(order.relation, need, NUM_RELATIONS)  # of each target relation
        exhausted = vain >= order.tries
        hopeless = (needed > 0) & exhausted
        spent = order.only_once and tried.sum() > _BUDGET * len(wanted)
        if hopeless.any() or spent:
            others = np.flatnonzero(~exhausted[order.relation] & (gained[order.relation] > 0))
            if spent or not len(others):
                possible = f"at most {len(stories) * order.blocks} rows"
                if not len(stories):
                    possible = _longest(config, split, task, graph, rng)
                raise InputError(
                    f"task {task}: {len(stories)} of {len(wanted)} {split} stories found in "
                    f"{tried.sum()} random ones; choose {possible}, or larger families, or hold "
                    "out less"
                )
            for kind in np.flatnonzero((need > 0) & hopeless[order.relation]):
                rows = np.flatnonzero(wanted == kind)[have[kind] :]
                wanted[rows] = rng.choice(others, len(rows))
            continue
        count = np.minimum(needed * (tried + 2) / (gained + 1) + 4, _ROUND).astype(np.int64)
        relation = np.repeat(np.arange(NUM_RELATIONS), count * (needed > 0))
        new = candidates(config, split, task, graph, tellable, relation, rng)
        stories = order.pick(Stories.join([stories, new]), wanted)
        gain = np.bincount(stories.target, minlength=NUM_RELATIONS) - gained
        tried += count * (needed > 0)
        gained += gain
        vain = np.where(gain > 0, 0, vain + count * (needed > 0))
    place = np.empty(len(wanted), np.int64)  # so that each row gets the kind it wants
    place[np.argsort(wanted, kind="stable")] = np.argsort(order.kind_of(stories), kind="stable")
    return stories.select(place), rng


def _longest(
    config: Config, split: str, task: Task, graph: KinshipGraph, rng: np.random.Generator
) -> str:
    """The longest clauses that the families allow, in words."""
    relation = np.repeat(RELATION_OF[graph.provable()].ravel(), 64)
    for k in range(task.k - 1, 1, -1):
        shorter = Task(task.noise, k)
        if len(candidates(config, split, shorter, graph, _ALL_PREDICATES, relation, rng)):
            return f"clauses of at most {k} facts"
    return "another kind of noise"


def check(config: Config, split: str, task: Task) -> None:
    """Raises InputError if `block` surely would, without drawing many stories."""
    rng = _chance(config, split, task, 0)
    graph = kinship_graph(config.shape, _FAMILIES, rng)
    order = _order(config, split, task, graph, 0, rng)
    relation = np.repeat(np.unique(order.relation[order.wanted]), _FEW)
    if not len(candidates(config, split, task, graph, _ALL_PREDICATES, relation, rng)):
        block(config, split, task, 0)


@dataclass(frozen=True)
class _Order:
    """Which stories a block is made of. A kind is a target relation or a clause."""

    wanted: np.ndarray  # [rows] kind
    relation: np.ndarray  # [kinds] target relation
    codes: np.ndarray | None  # [kinds] clause codes, sorted, where the kinds are clauses
    only_once: bool = False  # whether each clause may come once only, in all blocks together
    index: int = 0  # of this block
    blocks: int = 1
    tries: int = _TRIES

    def kind_of(self, stories: Stories) -> np.ndarray:
        """The kind of each story, [B]."""
        if self.codes is None:
            return stories.target
        return np.searchsorted(self.codes, clause_code(stories.relations[0]))

    def pick(self, stories: Stories, wanted: np.ndarray) -> Stories:
        """The first stories that differ, no more of each kind than wanted."""
        if self.only_once:
            code = clause_code(stories.relations[0])
            own = np.flatnonzero(code % np.uint64(self.blocks) == self.index)
            stories = stories.select(own[np.sort(np.unique(code[own], return_index=True)[1])])
        else:
            stories = _unique(stories)
        most = np.bincount(wanted, minlength=len(self.relation))
        return stories.select(_within(self.kind_of(stories), most))


def _order(
    config: Config,
    split: str,
    task: Task,
    graph: KinshipGraph,
    index: int,
    rng: np.random.Generator,
) -> _Order:
    """What block `index` is to hold."""
    known = RELATION_OF[graph.provable()].ravel()
    if not len(known):
        raise InputError(f"task {task}: no fact of such families follows from others; "
                         "more --max-levels, --max-child or --p-marry are needed")  # fmt: skip
    relations = np.arange(NUM_RELATIONS)
    unique = config.unique_test_clauses and split == "test"
    if not (unique or config.equal_clauses):
        return _Order(known[rng.integers(0, len(known), BLOCK)], relations, None)
    rows = config.rows(split, task)
    if is_listable(config, task.k):
        clauses = allowed_clauses(config, split, task.k)
        if not len(clauses):
            raise InputError(
                f"task {task}: there is no clause of {task.k} facts for {split} stories; choose a "
                "smaller clause length, larger families, or hold out less"
            )
        if unique and rows > len(clauses):
            raise InputError(
                f"task {task}: {rows} {split} rows of different clauses are wanted, but there are "
                f"{len(clauses)} such clauses; ask for {len(clauses)} rows or fewer"
            )
        if rows > len(clauses) // 4:
            turn = _chance(config, split, task).permutation(len(clauses))
            wanted = turn[np.arange(index * BLOCK, (index + 1) * BLOCK) % len(clauses)]
            codes = clause_code(clauses[:, :-1])
            return _Order(wanted, clauses[:, -1], codes, tries=_TRIES_CLAUSE)
    # Many more clauses than rows: each at most once. A block has those whose code is its own.
    size = min(BLOCK, rows - index * BLOCK)
    if size <= 0:
        raise InputError(f"task {task}: only {rows} {split} rows of different clauses are planned")
    wanted = known[rng.integers(0, len(known), size)]
    blocks = -(-rows // BLOCK)
    return _Order(wanted, relations, None, True, index, blocks, _TRIES_ONCE)


def _chance(config: Config, split: str, task: Task, *index: int) -> np.random.Generator:
    key = (SPLITS.index(split), task.noise, task.k, *index)
    return np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=key))


def _within(kind: np.ndarray, most: np.ndarray) -> np.ndarray:
    """The first most[i] rows of each kind i, in order; kind is [B]."""
    order = np.argsort(kind, kind="stable")
    ranked = kind[order]
    rank = np.arange(len(kind)) - np.searchsorted(ranked, ranked)
    return np.sort(order[rank < most[ranked]])


def _unique(stories: Stories) -> Stories:
    """The stories without those that say the same of the same names as an earlier one."""
    columns = np.concatenate(
        [stories.name, stories.gender, *stories.relations, *stories.nodes], axis=1
    ).astype(np.int16)
    rows = np.ascontiguousarray(columns).view(f"V{columns.shape[1] * 2}").ravel()
    first = np.unique(rows, return_index=True)[1]
    return stories if len(first) == len(stories) else stories.select(np.sort(first))
