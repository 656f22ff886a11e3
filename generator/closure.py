"""From the backbone of families (children, couples) to all their facts, and how facts resolve.

The rules `child inv-grand -> inv-child` and `child inv-un -> sibling` are not used to *derive*
facts: from the side of a parent who married into the family they would turn a parent-in-law into a
parent. They derive nothing else that is new, and they do take part in proofs, where what they prove
is true. (The released graphs do hold such false parents and siblings.)
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from generator.family import Families, FamilyShape, sample_families
from generator.kinship import COMPOSE, NUM_PREDICATES, PREDICATE_ID

_ONLY_IN_PROOFS = (("child", "inv-grand"), ("child", "inv-un"))
_DERIVE = COMPOSE.copy()
for _first, _second in _ONLY_IN_PROOFS:
    _DERIVE[PREDICATE_ID[_first], PREDICATE_ID[_second]] = -1
_CHILD, _PARENT, _SO = (PREDICATE_ID[name] for name in ("child", "inv-child", "SO"))


@dataclass(frozen=True)
class KinshipGraph:
    """All E facts of some families, sorted by (start, end), and the R ways to resolve them.

    A resolution replaces the fact (X, head, Y) by two others, (X, first, Z) and (Z, second, Y). The
    resolutions of fact e by its i-th rule are the rows `member[g]:member[g + 1]` of `body`, where
    g = rule[e] + i, and i < rule[e + 1] - rule[e].
    """

    families: Families
    start: np.ndarray  # [E] X, number of a person
    end: np.ndarray  # [E] Y
    predicate: np.ndarray  # [E]
    either: np.ndarray  # [E] the same number for a fact and its inverse, from Y to X
    out: np.ndarray  # [F * n + 1] the facts that start at person p are out[p]:out[p + 1]
    rule: np.ndarray  # [E + 1]
    member: np.ndarray  # [number of (fact, rule) + 1]
    body: np.ndarray  # [R, 2] the two facts
    target: np.ndarray  # facts that resolve, by predicate
    target_of: np.ndarray  # [12] those of predicate p are target_of[p]:target_of[p + 1] of `target`

    def resolvable(self, fact: np.ndarray) -> np.ndarray:
        """Whether a rule resolves the facts, same shape."""
        return self.rule[fact + 1] > self.rule[fact]

    def resolve(self, fact: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The two facts of a uniform rule and uniform people that resolve each fact [B], [B, 2].

        All must be resolvable.
        """
        rules = self.rule[fact + 1] - self.rule[fact]
        group = self.rule[fact] + _below(rules, rng)
        row = self.member[group] + _below(self.member[group + 1] - self.member[group], rng)
        return self.body[row]

    def sample_target(self, predicate: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A uniform fact of each given predicate, which must be one of `provable`, same shape."""
        size = np.diff(self.target_of)
        return self.target[self.target_of[predicate] + _below(size[predicate], rng)]

    def provable(self) -> np.ndarray:
        """The predicates of which there are facts that resolve."""
        return np.flatnonzero(np.diff(self.target_of))


def _below(bound: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Uniform integers, each at least 0 and below its bound."""
    return (rng.random(bound.shape) * bound).astype(np.int64)


def kinship_graph(shape: FamilyShape, count: int, rng: np.random.Generator) -> KinshipGraph:
    """The facts of `count` random families (of the one family, where all are the same)."""
    return _the_graph(shape) if shape.is_fixed() else close(sample_families(shape, count, rng))


@lru_cache(maxsize=16)
def _the_graph(shape: FamilyShape) -> KinshipGraph:
    return close(sample_families(shape, 1, np.random.default_rng(0)))


def close(families: Families) -> KinshipGraph:
    """All facts that follow from the backbone of some families, and all their resolutions."""
    people = len(families.exists)
    facts = _backbone(families)  # {start * people + end: predicate}, sorted
    while True:
        derived = _derive(facts, people)
        if len(derived[0]) == len(facts[0]):
            break
        facts = derived
    key, predicate = facts
    start, end = key // people, key % people
    out = np.searchsorted(start, np.arange(people + 1))

    i, j = _joined(out, end)
    head = COMPOSE[predicate[i], predicate[j]]
    rule_name = predicate[i] * NUM_PREDICATES + predicate[j]
    i, j, head, rule_name = (a[(head >= 0) & (start[i] != end[j])] for a in (i, j, head, rule_name))
    fact = np.searchsorted(key, start[i] * people + end[j]).clip(max=len(key) - 1)
    true = (key[fact] == start[i] * people + end[j]) & (predicate[fact] == head)
    i, j, fact, rule_name = i[true], j[true], fact[true], rule_name[true]
    order = np.lexsort((rule_name, fact))
    i, j, fact, rule_name = i[order], j[order], fact[order], rule_name[order]
    new = np.ones(len(fact), bool)
    new[1:] = (fact[1:] != fact[:-1]) | (rule_name[1:] != rule_name[:-1])
    group = np.flatnonzero(new)

    rule = np.searchsorted(fact[group], np.arange(len(key) + 1))
    target = np.flatnonzero(np.diff(rule))
    target = target[np.argsort(predicate[target], kind="stable")]
    return KinshipGraph(
        families=families,
        start=start,
        end=end,
        predicate=predicate,
        either=np.minimum(np.arange(len(key)), np.searchsorted(key, end * people + start)),
        out=out,
        rule=rule,
        member=np.append(group, len(fact)),
        body=np.stack([i, j], axis=1),
        target=target,
        target_of=np.searchsorted(predicate[target], np.arange(NUM_PREDICATES + 1)),
    )


def _backbone(families: Families) -> tuple[np.ndarray, np.ndarray]:
    """Parents with their children, and couples, both ways: keys and predicates, sorted by key."""
    child = np.flatnonzero(families.parent >= 0)
    parent, other = families.parent[child], families.partner
    married = np.flatnonzero(families.partner >= 0)
    start = np.concatenate([parent, other[parent], child, child, married])
    end = np.concatenate([child, child, parent, other[parent], other[married]])
    predicate = np.repeat([_CHILD, _PARENT, _SO], [2 * len(child), 2 * len(child), len(married)])
    key = start * len(families.exists) + end
    order = np.argsort(key)
    return key[order], predicate[order]


def _derive(facts: tuple[np.ndarray, np.ndarray], people: int) -> tuple[np.ndarray, np.ndarray]:
    """The facts and those that one use of one rule adds."""
    key, predicate = facts
    start, end = key // people, key % people
    i, j = _joined(np.searchsorted(start, np.arange(people + 1)), end)
    head = _DERIVE[predicate[i], predicate[j]]
    new = (head >= 0) & (start[i] != end[j])
    keys = np.concatenate([key, start[i[new]] * people + end[j[new]]])
    unique, index = np.unique(keys, return_index=True)  # the first of each: what is known stays
    return unique, np.concatenate([predicate, head[new]])[index]


def _joined(out: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of facts (i, j) where j starts at the end of i; facts sorted by start."""
    degree = out[end + 1] - out[end]
    i = np.repeat(np.arange(len(end)), degree)
    before = np.repeat(np.cumsum(degree) - degree, degree)
    return i, np.arange(len(i)) - before + out[end[i]]
