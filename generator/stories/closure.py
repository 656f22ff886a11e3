"""All facts of a family, derived from parents and partners, and the rule applications behind them.

The rules `child inv-grand -> inv-child` and `child inv-un -> sibling` are not used to *derive*
facts: for a parent who married into the family, they would turn a parent-in-law into a parent. They
derive no other new facts. Proofs do use them where the conclusion is true. (The released family
graphs do contain such false parents and siblings.)
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from generator.relations.kinship import COMPOSE, NUM_PREDICATES, PREDICATE_ID
from generator.stories.family import Families, FamilyShape, sample_families

_ONLY_IN_PROOFS = (("child", "inv-grand"), ("child", "inv-un"))
_DERIVE = COMPOSE.copy()
for _first, _second in _ONLY_IN_PROOFS:
    _DERIVE[PREDICATE_ID[_first], PREDICATE_ID[_second]] = -1
_CHILD, _PARENT, _SO = (PREDICATE_ID[name] for name in ("child", "inv-child", "SO"))


@dataclass(frozen=True)
class KinshipGraph:
    """All E facts of F families, sorted by (start, end), and all rule applications that prove them.

    A rule application proves the fact (X, head, Y) from its body: the facts (X, first, Z) and
    (Z, second, Y). Applications are grouped by (fact, rule). The i-th rule that proves fact e has
    group g = rule_offset[e] + i, with i < rule_offset[e + 1] - rule_offset[e], and its bodies are
    body[group_offset[g]:group_offset[g + 1]].
    """

    families: Families
    start: np.ndarray  # [E] person id of X
    end: np.ndarray  # [E] person id of Y
    predicate: np.ndarray  # [E]
    pair_id: np.ndarray  # [E] equal for a fact and its inverse, different otherwise
    start_offset: np.ndarray  # [F * n + 1] facts of person p: start_offset[p]:start_offset[p + 1]
    rule_offset: np.ndarray  # [E + 1]
    group_offset: np.ndarray  # [groups + 1]
    body: np.ndarray  # [applications, 2] fact indices
    target: np.ndarray  # [targets] facts that some rule proves, sorted by predicate
    target_offset: np.ndarray  # [12] predicate p: target[target_offset[p]:target_offset[p + 1]]

    def people(self, walks: np.ndarray) -> np.ndarray:
        """Returns the people along walks of facts, [B, L] -> [B, L + 1]."""
        return np.concatenate([self.start[walks], self.end[walks[:, -1:]]], axis=1)

    def is_provable(self, fact: np.ndarray) -> np.ndarray:
        """Returns True for facts that some rule proves, same shape."""
        return self.rule_offset[fact + 1] > self.rule_offset[fact]

    def sample_body(self, fact: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Samples a rule, and then one of its bodies, [B, 2], for each provable fact [B]."""
        num_rules = self.rule_offset[fact + 1] - self.rule_offset[fact]
        group = self.rule_offset[fact] + _below(num_rules, rng)
        num_bodies = self.group_offset[group + 1] - self.group_offset[group]
        return self.body[self.group_offset[group] + _below(num_bodies, rng)]

    def sample_target(self, predicate: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Samples a provable fact of each predicate in `provable_predicates()`, same shape."""
        size = np.diff(self.target_offset)
        return self.target[self.target_offset[predicate] + _below(size[predicate], rng)]

    def provable_predicates(self) -> np.ndarray:
        """Returns the predicates with provable facts."""
        return np.flatnonzero(np.diff(self.target_offset))


def _below(bound: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Uniform integers in [0, bound)."""
    return (rng.random(bound.shape) * bound).astype(np.int64)


def kinship_graph(shape: FamilyShape, count: int, rng: np.random.Generator) -> KinshipGraph:
    """Returns the facts of `count` random families, or of one if all families are equal."""
    return _fixed_graph(shape) if shape.is_fixed() else close(sample_families(shape, count, rng))


@lru_cache(maxsize=16)
def _fixed_graph(shape: FamilyShape) -> KinshipGraph:
    return close(sample_families(shape, 1, np.random.default_rng(0)))


def close(families: Families) -> KinshipGraph:
    """Returns all facts that follow from parents and partners, with all rule applications."""
    people = len(families.exists)
    key, predicate = _parents_and_partners(families)
    known = 0
    while known < (known := len(key)):
        key, predicate = _derive(key, predicate, people)
    start, end = key // people, key % people
    start_offset = np.searchsorted(start, np.arange(people + 1))

    fact, rule, body = _rule_applications(key, predicate, people, start_offset)
    is_first = np.ones(len(fact), bool)
    is_first[1:] = (fact[1:] != fact[:-1]) | (rule[1:] != rule[:-1])
    group = np.flatnonzero(is_first)
    rule_offset = np.searchsorted(fact[group], np.arange(len(key) + 1))
    target = np.flatnonzero(np.diff(rule_offset))
    target = target[np.argsort(predicate[target], kind="stable")]
    return KinshipGraph(
        families=families,
        start=start,
        end=end,
        predicate=predicate,
        pair_id=np.minimum(np.arange(len(key)), np.searchsorted(key, end * people + start)),
        start_offset=start_offset,
        rule_offset=rule_offset,
        group_offset=np.append(group, len(fact)),
        body=body,
        target=target,
        target_offset=np.searchsorted(predicate[target], np.arange(NUM_PREDICATES + 1)),
    )


def _parents_and_partners(families: Families) -> tuple[np.ndarray, np.ndarray]:
    """Parent, child and partner facts: keys (start * people + end), sorted, and predicates."""
    child = np.flatnonzero(families.parent >= 0)
    parent, partner = families.parent[child], families.partner
    married = np.flatnonzero(partner >= 0)
    start = np.concatenate([parent, partner[parent], child, child, married])
    end = np.concatenate([child, child, parent, partner[parent], partner[married]])
    predicate = np.repeat([_CHILD, _PARENT, _SO], [2 * len(child), 2 * len(child), len(married)])
    key = start * len(families.exists) + end
    order = np.argsort(key)
    return key[order], predicate[order]


def _derive(key: np.ndarray, predicate: np.ndarray, people: int) -> tuple[np.ndarray, np.ndarray]:
    """Adds all facts that follow by one application of one rule."""
    start, end = key // people, key % people
    i, j = _adjacent(np.searchsorted(start, np.arange(people + 1)), end)
    head = _DERIVE[predicate[i], predicate[j]]
    new = (head >= 0) & (start[i] != end[j])
    keys = np.concatenate([key, start[i[new]] * people + end[j[new]]])
    unique, index = np.unique(keys, return_index=True)  # the first of equal keys: the known fact
    return unique, np.concatenate([predicate, head[new]])[index]


def _rule_applications(
    key: np.ndarray, predicate: np.ndarray, people: int, start_offset: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All rule applications whose conclusion is one of the facts, sorted by fact and rule.

    Returns the fact [A], the rule (first * 11 + second) [A] and the body [A, 2].
    """
    start, end = key // people, key % people
    i, j = _adjacent(start_offset, end)
    head = COMPOSE[predicate[i], predicate[j]]
    applies = (head >= 0) & (start[i] != end[j])
    i, j, head = i[applies], j[applies], head[applies]
    goal = start[i] * people + end[j]
    fact = np.searchsorted(key, goal).clip(max=len(key) - 1)
    true = (key[fact] == goal) & (predicate[fact] == head)
    i, j, fact = i[true], j[true], fact[true]
    rule = predicate[i] * NUM_PREDICATES + predicate[j]
    order = np.lexsort((rule, fact))
    return fact[order], rule[order], np.stack([i[order], j[order]], axis=1)


def _adjacent(start_offset: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of facts (i, j) where j starts at the end of i; facts are sorted by start."""
    return ranges(start_offset[end], start_offset[end + 1])


def ranges(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs (i, j) where start[i] <= j < stop[i], in order."""
    size = stop - start
    i = np.repeat(np.arange(len(size)), size)
    return i, np.arange(len(i)) + np.repeat(start - (np.cumsum(size) - size), size)
