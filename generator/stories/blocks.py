"""Blocks of stories: rejection sampling until a block has the wanted number of stories per kind.

The stories of a task form an unbounded sequence of blocks of `BLOCK` stories. Each block has its
own random generator, seeded with the seed, split, task and block index. A seed therefore yields the
same stories regardless of which process computes which block, and of the number of rows unless
clauses are to be unique or equally frequent.

Rejected stories (held out, ambiguous or duplicate) are resampled with the same target relation, so
the relations stay uniform.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from generator.errors import InputError
from generator.relations.kinship import NUM_PREDICATES, NUM_RELATIONS, RELATION_OF
from generator.stories.clause import clause_code
from generator.stories.clause_sets import allowed_clauses, is_listable
from generator.stories.closure import KinshipGraph, kinship_graph
from generator.stories.config import SPLITS, Config, Task
from generator.stories.sample import Stories, candidates

BLOCK = 1024
_ALL_PREDICATES = np.ones(NUM_PREDICATES, bool)
_FAMILIES = 8  # random families per block; each serves 128 stories
_CHECK_SAMPLES = 16  # candidates per target relation in `check`
_MAX_SAMPLES = 4096  # candidates per target relation and round
# Consecutive rejected candidates of a relation before other relations take its place ...
_MAX_FAILURES = 4096
_MAX_FAILURES_UNIQUE = 1024  # ... if each clause may occur only once
_MAX_FAILURES_CLAUSES = 1 << 18  # ... if specific clauses are wanted: some are one in 100,000
_CANDIDATES_PER_ROW = 200  # upper bound if each clause may occur only once


def block(
    config: Config,
    split: str,
    task: Task,
    index: int,
    expressible: np.ndarray = _ALL_PREDICATES,
) -> tuple[Stories, np.random.Generator]:
    """Returns the stories of block `index` of a task, and the random generator for their text.

    Every block has `BLOCK` stories, except the last one of a test without repeated clauses. Noise
    facts have the `expressible` predicates, bool [11].
    """
    rng = _rng(config, split, task, index)
    graph = kinship_graph(config.shape, _FAMILIES, rng)
    plan = _plan(config, split, task, graph, index, rng)

    def sample(relation: np.ndarray) -> Stories:
        return candidates(config, split, task, graph, expressible, relation, rng)

    stories, num_candidates = _fill(plan, sample, rng)
    if len(stories) < len(plan.wanted):
        max_rows = len(stories) * plan.num_blocks
        advice = f"at most {max_rows} rows" if max_rows else "shorter clauses, another noise type"
        raise InputError(
            f"task {task}: found {len(stories)} of {len(plan.wanted)} {split} stories among "
            f"{num_candidates} random ones; choose {advice}, larger families, or another hold_out, "
            "clause_fraction or paraphrase_fraction"
        )
    return plan.arrange(stories), rng


def check(config: Config, split: str, task: Task) -> None:
    """Raises InputError if the stories of a task are likely impossible; samples few stories."""
    rng = _rng(config, split, task, 0)
    graph = kinship_graph(config.shape, _FAMILIES, rng)
    plan = _plan(config, split, task, graph, 0, rng)
    relation = np.repeat(np.unique(plan.relation[plan.wanted]), _CHECK_SAMPLES)
    if not len(candidates(config, split, task, graph, _ALL_PREDICATES, relation, rng)):
        block(config, split, task, 0)


@dataclass
class _Plan:
    """The stories that a block is to have.

    A kind is a target relation, or a clause if `codes` is given. If `unique_index` is given, each
    clause may occur once in all blocks together; the code of a clause determines its block.
    """

    wanted: np.ndarray  # [rows] kind of each row; `_fill` replaces impossible ones
    relation: np.ndarray  # [kinds] target relation
    max_failures: int = _MAX_FAILURES
    codes: np.ndarray | None = None  # [kinds] clause codes, sorted
    unique_index: int | None = None  # index of this block
    num_blocks: int = 1

    def kind_of(self, stories: Stories) -> np.ndarray:
        if self.codes is None:
            return stories.target
        return np.searchsorted(self.codes, clause_code(stories.relations[0]))

    def select(self, stories: Stories) -> Stories:
        """Returns the first distinct stories, at most as many of each kind as wanted."""
        rows = self._distinct(stories)
        limit = np.bincount(self.wanted, minlength=len(self.relation))
        kind = self.kind_of(stories)[rows]
        order = np.argsort(kind, kind="stable")
        ranked = kind[order]
        rank = np.arange(len(kind)) - np.searchsorted(ranked, ranked)
        return stories.select(rows[np.sort(order[rank < limit[ranked]])])

    def _distinct(self, stories: Stories) -> np.ndarray:
        """Rows of stories whose facts and names, or whose clause, are not in an earlier story."""
        if self.unique_index is None:
            values = [stories.name, stories.gender, *stories.relations, *stories.nodes]
            columns = np.concatenate(values, axis=1).astype(np.int16)
            rows = np.ascontiguousarray(columns).view(f"V{columns.shape[1] * 2}").ravel()
            return np.sort(np.unique(rows, return_index=True)[1])
        code = clause_code(stories.relations[0])
        own = np.flatnonzero(code % np.uint64(self.num_blocks) == self.unique_index)
        return own[np.sort(np.unique(code[own], return_index=True)[1])]

    def missing(self, stories: Stories) -> np.ndarray:
        """Returns the number of stories that are still needed, [kinds]."""
        count = partial(np.bincount, minlength=len(self.relation))
        return count(self.wanted) - count(self.kind_of(stories))

    def arrange(self, stories: Stories) -> Stories:
        """Returns the stories in an order such that each row has the kind that it wants."""
        rank = np.argsort(np.argsort(self.wanted, kind="stable"))
        return stories.select(np.argsort(self.kind_of(stories), kind="stable")[rank])


def _plan(
    config: Config,
    split: str,
    task: Task,
    graph: KinshipGraph,
    index: int,
    rng: np.random.Generator,
) -> _Plan:
    targets = RELATION_OF[graph.provable_predicates()].ravel()
    if not len(targets):
        raise InputError(
            f"task {task}: no facts can be derived in these families; increase max_levels, "
            "max_child or p_marry"
        )
    relations = np.arange(NUM_RELATIONS)
    unique = config.unique_test_clauses and split == "test"
    if not (unique or config.equal_clauses):
        return _Plan(targets[rng.integers(0, len(targets), BLOCK)], relations)
    rows = config.rows(split, task)
    if is_listable(config, task.k):
        clauses = allowed_clauses(config, split, task.k)
        if len(clauses) < (rows if unique else 1):
            raise InputError(
                f"task {task}: there are {len(clauses)} clauses of {task.k} facts for {split} "
                f"stories, expected {rows if unique else 1} or more; choose fewer rows, another "
                "clause length, larger families, or another hold_out or clause_fraction"
            )
        if rows > len(clauses) // 4:
            order = _rng(config, split, task).permutation(len(clauses))
            wanted = order[np.arange(index * BLOCK, (index + 1) * BLOCK) % len(clauses)]
            codes = clause_code(clauses[:, :-1])
            return _Plan(wanted, clauses[:, -1], _MAX_FAILURES_CLAUSES, codes)
    # There are many more clauses than rows: use each clause at most once.
    wanted = targets[rng.integers(0, len(targets), min(BLOCK, rows - index * BLOCK))]
    num_blocks = -(-rows // BLOCK)
    return _Plan(wanted, relations, _MAX_FAILURES_UNIQUE, unique_index=index, num_blocks=num_blocks)


def _fill(
    plan: _Plan, sample: Callable[[np.ndarray], Stories], rng: np.random.Generator
) -> tuple[Stories, int]:
    """Samples candidates until no stories are missing, or all relations have been given up.

    A relation is given up after too many consecutive rejections; others take its place. `sample`
    returns at most one story for each target relation. Also returns the number of candidates.
    """
    tried, accepted, failures = (np.zeros(NUM_RELATIONS, np.int64) for _ in range(3))
    max_candidates = np.inf
    if plan.unique_index is not None:
        max_candidates = _CANDIDATES_PER_ROW * len(plan.wanted)
    relations = np.arange(NUM_RELATIONS)
    stories = sample(relations[:0])
    while (missing := plan.missing(stories)).any() and tried.sum() <= max_candidates:
        needed = np.bincount(plan.relation, missing, NUM_RELATIONS)
        exhausted = failures >= plan.max_failures
        if (exhausted & (needed > 0)).any():
            others = np.flatnonzero((~exhausted & (accepted > 0))[plan.relation])
            if not len(others):
                break
            for kind in np.flatnonzero((missing > 0) & exhausted[plan.relation]):
                rows = np.flatnonzero(plan.wanted == kind)[-missing[kind] :]
                plan.wanted[rows] = rng.choice(others, len(rows))
            continue
        # Extrapolate from the acceptance rate so far.
        count = np.minimum(needed * (tried + 2) / (accepted + 1) + 4, _MAX_SAMPLES)
        count = np.where(needed > 0, count, 0).astype(np.int64)
        stories = plan.select(Stories.join([stories, sample(np.repeat(relations, count))]))
        gained = np.bincount(stories.target, minlength=NUM_RELATIONS) - accepted
        tried += count
        accepted += gained
        failures = np.where(gained > 0, 0, failures + count)
    return stories, int(tried.sum())


def _rng(config: Config, split: str, task: Task, *index: int) -> np.random.Generator:
    key = (SPLITS.index(split), task.noise, task.k, *index)
    return np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=key))
