"""An explicit model of family trees, to check the generator of the benchmark of 2018."""

import itertools
from collections import Counter, defaultdict


class Tree:
    """A family tree, and the predicates between its people by their definitions."""

    def __init__(self) -> None:
        self.parents: list[set[int]] = []
        self.partner: dict[int, int] = {}

    def add(self, *parents: int) -> int:
        self.parents.append(set(parents))
        return len(self.parents) - 1

    def marry(self, a: int, b: int) -> None:
        self.partner |= {a: b, b: a}

    def predicate(self, x: int, y: int) -> str | None:
        """The predicate of Y relative to X."""
        downward = self._downward(x, y)
        if downward is None and (upward := self._downward(y, x)):
            return f"inv-{upward}"
        return downward

    def _downward(self, x: int, y: int) -> str | None:
        if self.partner.get(x) == y:
            return "SO"
        if x in self.parents[y]:
            return "child"
        if any(x in self.parents[parent] for parent in self.parents[y]):
            return "grand"
        if y in self.partner and x in self.parents[self.partner[y]]:
            return "in-law"
        if self.parents[x] and self.parents[x] == self.parents[y]:
            return "sibling"
        return None

    def simple_paths(self, facts: int, married_siblings: bool = True) -> Counter:
        """Counts (clause, predicate between the ends) over all simple paths of a length.

        Siblings of whom one is married have an edge if `married_siblings`.
        """
        edges = defaultdict(dict)
        for x, y in itertools.permutations(range(len(self.parents)), 2):
            name = self.predicate(x, y)
            if name and (name != "sibling" or married_siblings or not {x, y} & {*self.partner}):
                edges[x][y] = name
        paths = [((x,), ()) for x in range(len(self.parents))]
        for _ in range(facts):
            paths = [
                ((*path, y), (*clause, name))
                for path, clause in paths
                for y, name in edges[path[-1]].items()
                if y not in path
            ]
        return Counter((clause, edges[path[0]].get(path[-1])) for path, clause in paths)


def two_families() -> Tree:
    """Two root couples whose children marry: some grandchildren have four grandparents."""
    tree = Tree()
    couples = [(tree.add(), tree.add()) for _ in range(2)]
    for couple in couples:
        tree.marry(*couple)
    (a, b), (c, d) = ([tree.add(*couple) for _ in range(2)] for couple in couples)
    tree.marry(a, c)
    tree.marry(b, tree.add())
    kids = [tree.add(*pair) for pair in ((a, c), (b, tree.partner[b])) for _ in range(2)]
    tree.marry(kids[0], tree.add())
    for _ in range(2):
        tree.add(kids[0], tree.partner[kids[0]])
    tree.marry(d, tree.add())
    return tree


def family_2018(l_max: int, num_children) -> Tree:
    """Algorithm 1; `num_children()` is called once per couple."""
    tree = Tree()
    level = [tree.add()]
    for _ in range(l_max):
        couples = [(p, tree.add()) for p in level]
        for couple in couples:
            tree.marry(*couple)
        level = [tree.add(*couple) for couple in couples for _ in range(num_children())]
    return tree
