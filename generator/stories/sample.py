"""Random stories as arrays.

A batch of stories is sampled in these steps: target facts, paths with proofs, genders, noise facts,
names, and a check that the stated facts imply the answer and no other.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from generator.relations.deduction import derivable
from generator.relations.kinship import GENDER_OF, PREDICATE_ALGEBRA, PREDICATE_OF, RELATION_OF
from generator.stories.clause import Chains, chain, held_out
from generator.stories.closure import KinshipGraph
from generator.stories.config import Config, Task
from generator.stories.names import NAMES_PER_GENDER
from generator.stories.noise import NoiseSampler


@dataclass(frozen=True)
class Stories:
    """B stories of one task T.K with up to N people and W walks of facts.

    The people of a story have ids in order of first occurrence in the walks. Fact i of walk w leads
    from person nodes[w][b, i] via relations[w][b, i] to person nodes[w][b, i + 1]. Walk 0 is the
    path between the query pair. The other walks are noise or, in tasks 6 and 7, the stated answer;
    they contain -1 in the stories of task 7 that do not state it.
    """

    task: Task
    nodes: tuple[np.ndarray, ...]  # W of [B, L + 1]
    relations: tuple[np.ndarray, ...]  # W of [B, L]
    target: np.ndarray  # [B] relation from the first to the last person of the path
    gender: np.ndarray  # [B, N], -1 for padding
    name: np.ndarray  # [B, N] index into the NAMES of the gender, -1 for padding
    family_node: np.ndarray  # [B, N] index within the family, -1 for padding
    # Each proof step derives (X, head, Y) from (X, first, Z) and (Z, second, Y).
    proof_people: np.ndarray  # [B, K - 1, 3] X, Z, Y
    proof_relations: np.ndarray  # [B, K - 1, 3] head, first, second

    def __len__(self) -> int:
        return len(self.target)

    def edges(self) -> np.ndarray:
        """Returns the facts as pairs of people, the path first, [B, E, 2]; -1 for padding."""
        pairs = [np.stack([nodes[:, :-1], nodes[:, 1:]], axis=2) for nodes in self.nodes]
        return np.concatenate(pairs, axis=1)

    def edge_relations(self) -> np.ndarray:
        """Returns the relations of `edges`, [B, E]; -1 for padding."""
        return np.concatenate(self.relations, axis=1)

    def query(self) -> np.ndarray:
        """Returns the query pairs (X, Y), [B, 2]. The target is the relation of Y to X."""
        return self.nodes[0][:, [0, -1]]

    def select(self, rows: np.ndarray | slice) -> "Stories":
        """Returns the stories at the given rows."""
        return _map_arrays(lambda a: a[rows], self)

    @staticmethod
    def join(parts: "list[Stories]") -> "Stories":
        """Concatenates stories of the same task."""
        return _map_arrays(lambda *a: np.concatenate(a), *parts)


def _map_arrays(function: Callable[..., np.ndarray], *parts: Stories) -> Stories:
    """Applies `function` to each array field of some stories."""
    mapped: dict[str, Any] = {}
    for f in fields(Stories)[1:]:  # the first is the task
        values = [getattr(stories, f.name) for stories in parts]
        is_tuple = isinstance(values[0], tuple)
        mapped[f.name] = tuple(map(function, *values)) if is_tuple else function(*values)
    return replace(parts[0], **mapped)


def candidates(
    config: Config,
    split: str,
    task: Task,
    graph: KinshipGraph,
    expressible: np.ndarray,
    relation: np.ndarray,
    rng: np.random.Generator,
) -> Stories:
    """Samples a story for each target relation [B] and returns those that the settings allow.

    Noise facts have the `expressible` predicates, bool [11].
    """
    families = graph.families
    target = graph.sample_target(PREDICATE_OF[relation], rng)
    chains = chain(graph, target, task.k, rng)
    bits = rng.integers(0, 2, (len(target), families.n), np.int8)
    # Flip all genders of a story if that of the second person in the query is wrong.
    bits ^= families.gender_of(bits, graph.end[target][:, None]) != GENDER_OF[relation][:, None]
    gender = families.gender_of(bits, graph.end[chains.facts])
    relations = RELATION_OF[graph.predicate[chains.facts], gender]

    keep = chains.complete.copy()
    if config.holds_out_clauses(task.k):
        test_only = held_out(relations, config.clause_fraction, config.seed)
        keep &= test_only == (split == "test")
    chains = Chains(*(a[keep] for a in chains))
    target, bits = target[keep], bits[keep]

    noise = NoiseSampler(graph, chains, expressible, rng)
    walks = [chains.facts]
    walks += [walk.sample(noise, getattr(config, walk.setting)) for walk in task.type.walks]
    stories = _assemble(task, graph, target, chains, walks, bits, rng)
    stories = stories.select(np.all([walk[:, 0] >= 0 for walk in walks], axis=0))
    return stories.select(is_unambiguous(stories)) if config.ambiguous == "drop" else stories


def _assemble(
    task: Task,
    graph: KinshipGraph,
    target: np.ndarray,
    chains: Chains,
    walks: list[np.ndarray],
    bits: np.ndarray,
    rng: np.random.Generator,
) -> Stories:
    """Assembles stories from targets [B], proofs, walks [B, L] and gender bits [B, n]."""
    families = graph.families
    n = families.n
    row = np.arange(len(target))[:, None]
    people = [graph.people(walk) for walk in walks]
    node_of, family_node = _story_ids(np.concatenate(people, axis=1) % n, n)
    family = people[0][:, :1] // n
    gender = families.gender_of(bits, family * n + family_node.clip(0)).astype(np.int64)
    gender[family_node < 0] = -1

    def relation_of(facts: np.ndarray) -> np.ndarray:
        return RELATION_OF[graph.predicate[facts], families.gender_of(bits, graph.end[facts])]

    nodes = [node_of[row, p % n] for p in people]
    relations = [relation_of(w) for w in walks]
    answer = relation_of(target[:, None])
    if task.type.stated:
        stated = rng.random((len(target), 1)) < task.type.stated
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
        proof_relations=np.stack([relation_of(f) for f in np.moveaxis(chains.steps, 2, 0)], axis=2),
    )


def is_unambiguous(stories: Stories) -> np.ndarray:
    """Returns True for stories whose facts imply the target and no other relation, [B]."""
    relations = stories.edge_relations()
    predicates = np.where(relations >= 0, PREDICATE_OF[relations], -1)
    people = stories.gender.shape[1]
    edges, query = stories.edges().clip(0), stories.query()
    found = derivable(edges, predicates, query, people, PREDICATE_ALGEBRA)
    is_implied = found[np.arange(len(found)), PREDICATE_OF[stories.target]]
    return is_implied & (found.sum(axis=1) == 1)


def _story_ids(people: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Assigns ids to the family members `people` [B, m] of each story in order of occurrence.

    Returns the id by family member, [B, n], and the family member by id, [B, m]; -1 for none.
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
    """Samples distinct name indices for the people of each story, [B, N]; -1 for padding."""
    b, people = present.shape
    name = np.empty((b, people), np.int64)
    for i in range(people):
        pick = rng.integers(0, NAMES_PER_GENDER - i, b)  # index among the unused names
        for used in np.sort(name[:, :i], axis=1).T:
            pick += pick >= used
        name[:, i] = pick
    return np.where(present, name, -1)
