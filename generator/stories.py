"""Random stories as arrays: families -> proofs -> noise -> names -> checks, a batch at a time."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from generator import noise
from generator.clause import Chains, chain, held_out
from generator.closure import KinshipGraph
from generator.config import (
    ALL_NOISE,
    DISCONNECTED,
    IRRELEVANT,
    MEMORY,
    MIXED,
    SUPPORTING,
    Config,
    Task,
)
from generator.kinship import GENDER_OF, PREDICATE_OF, RELATION_OF
from generator.names import NAMES
from generator.prover import derivable

_NAMES = len(NAMES[0])
_NOISE = (
    (SUPPORTING, noise.supporting, "supporting_length"),
    (IRRELEVANT, noise.irrelevant, "irrelevant_length"),
    (DISCONNECTED, noise.disconnected, "disconnected_length"),
)


@dataclass(frozen=True)
class Stories:
    """B stories of one task T.K with up to N people and W walks of facts.

    People are numbered within their story in the order of the walks, the path first. Walk w of L
    facts leads from person nodes[w][b, i] by relations[w][b, i] to person nodes[w][b, i + 1]. Walk
    0 is the path from the first to the second asked person, the others are noise (or the answer, in
    task 6), and hold -1 where a story of task 7 lacks it.
    """

    task: Task
    nodes: tuple[np.ndarray, ...]  # W of [B, L + 1]
    relations: tuple[np.ndarray, ...]  # W of [B, L]
    target: np.ndarray  # [B] relation from the first to the last person of the path
    gender: np.ndarray  # [B, N], -1: no such person
    name: np.ndarray  # [B, N] number in NAMES of its gender, -1: no such person
    family_node: np.ndarray  # [B, N] number within the family, -1: no such person
    # [B, K - 1, 3]: step s resolves (X, head, Y) into (X, first, Z), (Z, second, Y)
    proof_people: np.ndarray  # X, Z, Y
    proof_relations: np.ndarray  # head, first, second

    def __len__(self) -> int:
        return len(self.target)

    def edges(self) -> np.ndarray:
        """All facts as pairs of people, the path first, [B, E, 2]; -1: no fact."""
        pairs = [np.stack([nodes[:, :-1], nodes[:, 1:]], axis=2) for nodes in self.nodes]
        return np.concatenate(pairs, axis=1)

    def edge_relations(self) -> np.ndarray:
        """The relations of `edges`, [B, E]; -1: no fact."""
        return np.concatenate(self.relations, axis=1)

    def query(self) -> np.ndarray:
        """The asked people (X, Y), [B, 2]: the target is what Y is to X."""
        return self.nodes[0][:, [0, -1]]

    def select(self, rows: np.ndarray | slice) -> "Stories":
        """Some of the stories."""
        return _map_arrays(lambda a: a[rows], self)

    @staticmethod
    def join(parts: "list[Stories]") -> "Stories":
        """Stories of the same task, one part after the other."""
        return _map_arrays(lambda *a: np.concatenate(a), *parts)


def _map_arrays(function: Callable[..., np.ndarray], first: Stories, *others: Stories) -> Stories:
    """A Stories whose every array is `function` of those of the given ones."""
    values: dict[str, Any] = {"task": first.task}
    for f in fields(Stories):
        if f.name != "task":
            of = [getattr(s, f.name) for s in (first, *others)]
            is_tuple = isinstance(of[0], tuple)
            values[f.name] = tuple(map(function, *of)) if is_tuple else function(*of)
    return Stories(**values)


def candidates(
    config: Config,
    split: str,
    task: Task,
    graph: KinshipGraph,
    tellable: np.ndarray,
    relation: np.ndarray,
    rng: np.random.Generator,
) -> Stories:
    """The allowed ones of random stories, one for each given target relation [B].

    Noise facts are of the `tellable` predicates, bool [11].
    """
    families = graph.families
    n = families.n
    target = graph.sample_target(PREDICATE_OF[relation], rng)
    chains = chain(graph, target, task.k, rng)
    bits = rng.integers(0, 2, (len(target), n), np.int8)
    # Where the gender of the asked person is wrong, all genders are turned round.
    bits ^= families.gender_of(bits, graph.end[target][:, None]) != GENDER_OF[relation][:, None]
    path = chains.people(graph)
    relations = RELATION_OF[graph.predicate[chains.facts], families.gender_of(bits, path[:, 1:])]

    keep = chains.complete.copy()
    if config.holds_out_clauses(task.k):
        tests_only = held_out(relations, config.clause_fraction, config.seed)
        keep &= tests_only if split == "test" else ~tests_only
    chains = Chains(*(a[keep] for a in chains))
    target, bits, path = target[keep], bits[keep], path[keep]

    taken = np.zeros((len(path), n), bool)
    taken[np.arange(len(path))[:, None], path % n] = True
    walks = [chains.facts]
    for kind, add, length in _NOISE:
        if task.noise in (kind, ALL_NOISE):
            walks.append(add(graph, tellable, chains, taken, getattr(config, length), rng))
    stories = _assemble(task, graph, target, chains, walks, bits, rng)
    stories = stories.select(np.all([walk[:, 0] >= 0 for walk in walks], axis=0))
    return stories.select(audited(stories)) if config.ambiguous == "drop" else stories


def _assemble(
    task: Task,
    graph: KinshipGraph,
    target: np.ndarray,
    chains: Chains,
    walks: list[np.ndarray],
    bits: np.ndarray,
    rng: np.random.Generator,
) -> Stories:
    """Stories from facts: the targets [B], their proofs, the walks [B, L] and random genders."""
    families = graph.families
    n = families.n
    row = np.arange(len(target))[:, None]
    people = [np.concatenate([graph.start[w], graph.end[w[:, -1:]]], axis=1) for w in walks]
    node_of, family_node = _number(np.concatenate(people, axis=1) % n, n)
    family = people[0][:, :1] // n
    gender = families.gender_of(bits, family * n + family_node.clip(0)).astype(np.int64)
    gender[family_node < 0] = -1

    def related(facts: np.ndarray) -> np.ndarray:
        return RELATION_OF[graph.predicate[facts], families.gender_of(bits, graph.end[facts])]

    nodes = [node_of[row, p % n] for p in people]
    relations = [related(w) for w in walks]
    answer = related(target[:, None])
    if task.noise in (MEMORY, MIXED):
        stated = rng.random((len(target), 1)) < (1.0 if task.noise == MEMORY else 0.5)
        nodes.append(np.where(stated, nodes[0][:, [0, -1]], -1))
        relations.append(np.where(stated, answer, -1))
    head, first, _ = np.moveaxis(chains.steps, 2, 0)  # [B, K - 1] each
    steps = np.stack([graph.start[head], graph.end[first], graph.end[head]], axis=2)
    return Stories(
        task=task,
        nodes=tuple(nodes),
        relations=tuple(relations),
        target=answer[:, 0],
        gender=gender,
        name=_names(gender >= 0, rng),
        family_node=family_node,
        proof_people=node_of[row[:, :, None], steps % n],
        proof_relations=np.stack([related(f) for f in np.moveaxis(chains.steps, 2, 0)], axis=2),
    )


def audited(stories: Stories) -> np.ndarray:
    """Whether the facts of each story derive its answer and no other, [B]."""
    relations = stories.edge_relations()
    predicates = np.where(relations >= 0, PREDICATE_OF[relations], -1)
    people = stories.gender.shape[1]
    found = derivable(stories.edges().clip(0), predicates, stories.query(), people)
    right = found[np.arange(len(found)), PREDICATE_OF[stories.target]]
    return right & (found.sum(axis=1) == 1)


def _number(people: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers the people [B, m] of each story in order of appearance.

    Returns:
      [B, n] the number of person i of the family in the story, -1 where it is not in it;
      [B, m] the person of each number, -1 where the story has fewer.
    """
    row = np.arange(len(people))
    node_of = np.full((len(people), n), -1)
    family_node = np.full(people.shape, -1)
    count = np.zeros(len(people), np.int64)
    for person in people.T:
        new = node_of[row, person] < 0
        node_of[row[new], person[new]] = count[new]
        family_node[row[new], count[new]] = person[new]
        count += new
    return node_of, family_node


def _names(present: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Different random name numbers for the people of each story, [B, N]; -1 for the absent."""
    b, people = present.shape
    name = np.empty((b, people), np.int64)
    for i in range(people):
        pick = rng.integers(0, _NAMES - i, b)  # among the names not yet given
        for given in np.sort(name[:, :i], axis=1).T:
            pick += pick >= given
        name[:, i] = pick
    return np.where(present, name, -1)
