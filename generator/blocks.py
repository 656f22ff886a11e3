"""Blocks of stories: rejection sampling until a block has the wanted number of stories per kind.

The stories of a task form an unbounded sequence of blocks of `BLOCK` stories. Each block has its
own random generator, seeded with the seed, split, task, block index and epoch. A seed therefore
yields the same stories regardless of the number of rows and of which process computes which block.

Rejected stories (held out, ambiguous or duplicate) are resampled with the same target relation, so
the relations stay uniform.
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
    epoch: int = 0,
) -> tuple[Stories, np.random.Generator]:
    """Returns block `index` of a task.

    Args:
      config: generator settings.
      split: train, test or dev.
      task: one of the tasks of the split.
      index: index of the block. Every block has `BLOCK` stories, except the last one of a test
        without repeated clauses.
      expressible: bool [11], the predicates that noise facts may have.
      epoch: other epochs have other stories under the same hold-out. Files contain epoch 0.

    Returns:
      The stories, and the random generator to use for their text.

    Raises:
      InputError: the settings allow no such stories, or too few.
    """
    rng = _rng(config, split, task, index, *([epoch] if epoch else []))
    source = _Source(config, split, task, expressible, rng)
    plan = _plan(source, index)
    return plan.arrange(_fill(source, plan)), rng


def check(config: Config, split: str, task: Task) -> None:
    """Raises InputError if the stories of a task are likely impossible; samples few stories."""
    source = _Source(config, split, task, _ALL_PREDICATES, _rng(config, split, task, 0))
    plan = _plan(source, 0)
    relation = np.repeat(np.unique(plan.relation[plan.wanted]), _CHECK_SAMPLES)
    if not len(source.sample(relation)):
        block(config, split, task, 0)


class _Source:
    """Random candidate stories of a task, and the families that they are about."""

    def __init__(
        self,
        config: Config,
        split: str,
        task: Task,
        expressible: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        self.config, self.split, self.task = config, split, task
        self.expressible, self.rng = expressible, rng
        self.graph: KinshipGraph = kinship_graph(config.shape, _FAMILIES, rng)

    def sample(self, relation: np.ndarray, task: Task | None = None) -> Stories:
        """Returns at most one story for each target relation [B]; the others were rejected."""
        return candidates(
            self.config, self.split, task or self.task, self.graph, self.expressible, relation,
            self.rng,
        )  # fmt: skip

    def target_relations(self) -> np.ndarray:
        """Returns the relations that a story can have as its target."""
        return RELATION_OF[self.graph.provable_predicates()].ravel()

    def longest_clause(self) -> int | None:
        """Returns the largest K' < K for which there are stories, or None."""
        relation = np.repeat(self.target_relations(), 64)
        for k in range(self.task.k - 1, 1, -1):
            if len(self.sample(relation, Task(self.task.noise, k))):
                return k
        return None


@dataclass(kw_only=True)
class _Plan:
    """The stories that a block is to have. A kind is a target relation or a clause."""

    wanted: np.ndarray  # [rows] kind of each row; changed by `replace`
    relation: np.ndarray  # [kinds] target relation
    max_failures: int = _MAX_FAILURES
    num_blocks: int = 1  # blocks of the whole file

    def kind_of(self, stories: Stories) -> np.ndarray:
        """Returns the kind of each story, [B]."""
        return stories.target

    def deduplicate(self, stories: Stories) -> Stories:
        """Returns the stories that differ from all earlier ones."""
        return _unique(stories)

    def is_over_budget(self, num_candidates: int) -> bool:
        """Returns True if so many candidates are enough to give up."""
        return False

    def select(self, stories: Stories) -> Stories:
        """Returns the first distinct stories, at most as many of each kind as wanted."""
        stories = self.deduplicate(stories)
        limit = np.bincount(self.wanted, minlength=len(self.relation))
        kind = self.kind_of(stories)
        order = np.argsort(kind, kind="stable")
        ranked = kind[order]
        rank = np.arange(len(kind)) - np.searchsorted(ranked, ranked)
        return stories.select(np.sort(order[rank < limit[ranked]]))

    def missing(self, stories: Stories) -> np.ndarray:
        """Returns the number of stories that are still needed, [kinds]."""
        kinds = len(self.relation)
        found = np.bincount(self.kind_of(stories), minlength=kinds)
        return np.bincount(self.wanted, minlength=kinds) - found

    def replace(
        self, kinds: np.ndarray, others: np.ndarray, stories: Stories, rng: np.random.Generator
    ) -> None:
        """Replaces the missing rows of some kinds by rows of random other kinds."""
        found = np.bincount(self.kind_of(stories), minlength=len(self.relation))
        for kind in kinds:
            rows = np.flatnonzero(self.wanted == kind)[found[kind] :]
            self.wanted[rows] = rng.choice(others, len(rows))

    def arrange(self, stories: Stories) -> Stories:
        """Returns the stories in an order such that each row has the kind that it wants."""
        place = np.empty(len(self.wanted), np.int64)
        place[np.argsort(self.wanted, kind="stable")] = np.argsort(
            self.kind_of(stories), kind="stable"
        )
        return stories.select(place)


@dataclass(kw_only=True)
class _ClausePlan(_Plan):
    """A block with given clauses; the kinds are clauses."""

    codes: np.ndarray  # [kinds] clause codes, sorted
    max_failures: int = _MAX_FAILURES_CLAUSES

    def kind_of(self, stories: Stories) -> np.ndarray:
        return np.searchsorted(self.codes, clause_code(stories.relations[0]))


@dataclass(kw_only=True)
class _UniqueClausePlan(_Plan):
    """A block without repeated clauses; the kinds are relations.

    Each clause belongs to one block, determined by its code, so blocks have no clause in common.
    """

    index: int  # of this block
    max_failures: int = _MAX_FAILURES_UNIQUE

    def deduplicate(self, stories: Stories) -> Stories:
        code = clause_code(stories.relations[0])
        own = np.flatnonzero(code % np.uint64(self.num_blocks) == self.index)
        return stories.select(own[np.sort(np.unique(code[own], return_index=True)[1])])

    def is_over_budget(self, num_candidates: int) -> bool:
        return num_candidates > _CANDIDATES_PER_ROW * len(self.wanted)


def _plan(source: _Source, index: int) -> _Plan:
    """Returns the plan of block `index`."""
    config, split, task, rng = source.config, source.split, source.task, source.rng
    targets = source.target_relations()
    if not len(targets):
        raise InputError(
            f"task {task}: no facts can be derived in these families; increase --max-levels, "
            "--max-child or --p-marry"
        )
    all_relations = np.arange(NUM_RELATIONS)
    unique = config.unique_test_clauses and split == "test"
    if not (unique or config.equal_clauses):
        wanted = targets[rng.integers(0, len(targets), BLOCK)]
        return _Plan(wanted=wanted, relation=all_relations)
    rows = config.rows(split, task)
    if is_listable(config, task.k):
        clauses = _listed_clauses(source, rows, unique)
        if rows > len(clauses) // 4:
            order = _rng(config, split, task).permutation(len(clauses))
            wanted = order[np.arange(index * BLOCK, (index + 1) * BLOCK) % len(clauses)]
            codes = clause_code(clauses[:, :-1])
            return _ClausePlan(wanted=wanted, relation=clauses[:, -1], codes=codes)
    # There are many more clauses than rows: use each clause at most once.
    size = min(BLOCK, rows - index * BLOCK)
    if size <= 0:
        raise InputError(
            f"task {task}: block {index} is empty; {split} has only {rows} rows with different "
            "clauses"
        )
    wanted = targets[rng.integers(0, len(targets), size)]
    return _UniqueClausePlan(
        wanted=wanted, relation=all_relations, num_blocks=-(-rows // BLOCK), index=index
    )


def _listed_clauses(source: _Source, rows: int, unique: bool) -> np.ndarray:
    """Returns `allowed_clauses`; raises InputError if there are too few for the rows of a split."""
    config, split, task = source.config, source.split, source.task
    clauses = allowed_clauses(config, split, task.k)
    if not len(clauses):
        raise InputError(
            f"task {task}: there is no clause of {task.k} facts for {split} stories; choose a "
            "smaller clause length, larger families, or hold out less"
        )
    if unique and rows > len(clauses):
        raise InputError(
            f"task {task}: {rows} {split} rows with different clauses requested, but there are "
            f"only {len(clauses)} such clauses; request {len(clauses)} rows or fewer"
        )
    return clauses


def _fill(source: _Source, plan: _Plan) -> Stories:
    """Samples candidates until nothing is missing from the plan.

    Relations with too many consecutive rejections are given up in favor of others.
    """
    tried, accepted, failures = (np.zeros(NUM_RELATIONS, np.int64) for _ in range(3))
    relations = np.arange(NUM_RELATIONS)
    stories = source.sample(relations[:0])
    while (missing := plan.missing(stories)).any():
        needed = np.bincount(plan.relation, missing, NUM_RELATIONS)
        exhausted = failures >= plan.max_failures
        if plan.is_over_budget(tried.sum()):
            raise _too_few(source, plan, stories, tried.sum())
        if (exhausted & (needed > 0)).any():
            others = np.flatnonzero((~exhausted & (accepted > 0))[plan.relation])
            if not len(others):
                raise _too_few(source, plan, stories, tried.sum())
            hopeless = np.flatnonzero((missing > 0) & exhausted[plan.relation])
            plan.replace(hopeless, others, stories, source.rng)
            continue
        # Extrapolate from the acceptance rate so far.
        count = np.minimum(needed * (tried + 2) / (accepted + 1) + 4, _MAX_SAMPLES)
        count = np.where(needed > 0, count, 0).astype(np.int64)
        new = source.sample(np.repeat(relations, count))
        stories = plan.select(Stories.join([stories, new]))
        gained = np.bincount(stories.target, minlength=NUM_RELATIONS) - accepted
        tried += count
        accepted += gained
        failures = np.where(gained > 0, 0, failures + count)
    return stories


def _too_few(source: _Source, plan: _Plan, stories: Stories, num_candidates: int) -> InputError:
    if len(stories):
        advice = f"at most {len(stories) * plan.num_blocks} rows"
    elif k := source.longest_clause():
        advice = f"clauses of at most {k} facts"
    else:
        advice = "another kind of noise"
    return InputError(
        f"task {source.task}: found {len(stories)} of {len(plan.wanted)} {source.split} stories "
        f"among {num_candidates} random ones; choose {advice}, larger families, or hold out less"
    )


def _rng(config: Config, split: str, task: Task, *index: int) -> np.random.Generator:
    key = (SPLITS.index(split), task.noise, task.k, *index)
    return np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=key))


def _unique(stories: Stories) -> Stories:
    """Removes stories with the same facts about the same names as an earlier one."""
    columns = np.concatenate(
        [stories.name, stories.gender, *stories.relations, *stories.nodes], axis=1
    ).astype(np.int16)
    rows = np.ascontiguousarray(columns).view(f"V{columns.shape[1] * 2}").ravel()
    first = np.unique(rows, return_index=True)[1]
    return stories if len(first) == len(stories) else stories.select(np.sort(first))
