"""Sentences of stories that state another relation than the facts of the row.

Sentences such as "[A] took his son [B]" and "[A]'s father, [B]" are read, where the data have a
fact between A and B. Of 100 that were drawn from those found in the tests of the six released data
sets and read, all contradict their facts; how many are missed is not known.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from generator.data_sets import Table
from generator.errors import plain_text
from generator.relations.kinship import (
    FEMALE,
    INVERSE,
    MALE,
    PREDICATE_OF,
    RELATION_ID,
    RELATIONS,
)
from generator.stories.text import SENTENCE
from generator.tables.rows import Row

_A, _B, _WORD = r"\[(?P<a>[^\[\]]+)\]", r"\[(?P<b>[^\[\]]+)\]", r"(?P<relation>[\w-]+)"
# B is the relation of A. The pronoun has the gender of A, the last person before it.
PATTERNS = (
    # Not "[A], his uncle, [B]", where A is the uncle.
    re.compile(rf"{_A}(?!, h)[^\[\].!?]*\b(?P<pronoun>his|her) {_WORD}(?: and)?,? {_B}"),
    re.compile(rf"{_A}'s {_WORD},? {_B}"),
)
SURE = (
    "Of 100 such sentences that were drawn from the tests of the released data sets and read, all "
    "contradict their facts. Sentences of other forms are not read."
)
_PRONOUN = {MALE: "his", FEMALE: "her"}


class Contradiction(NamedTuple):
    """A sentence that contradicts a fact."""

    sentence: str  # up to the second name
    fact: str


def contradictions(row: Row) -> list[Contradiction]:
    """Returns the sentences of a row that say of two people what its facts do not.

    A fact between them is stated in the data, in one direction or the other. Genders of relations
    make no difference.
    """
    person = {name: index for index, name in enumerate(row.names)}
    facts: dict[tuple[int, int], tuple[int, str]] = {}
    for (x, y), relation in zip(row.edges, row.relations, strict=False):
        said = f"{row.names[y]} is the {RELATIONS[relation]} of {row.names[x]}"
        predicate = int(PREDICATE_OF[relation])
        facts[x, y] = predicate, said
        facts.setdefault((y, x), (int(INVERSE[predicate]), said))
    found = []
    for sentence in SENTENCE.split(row.story):
        for pattern in PATTERNS:
            for match in pattern.finditer(sentence):
                a, b = person.get(match["a"]), person.get(match["b"])
                if a is None or b is None or match["relation"] not in RELATION_ID:
                    continue
                pronoun = match.groupdict().get("pronoun")
                if pronoun and _PRONOUN.get(row.genders[a]) != pronoun:
                    continue
                predicate, said = facts.get((a, b), (-1, ""))
                if said and predicate != PREDICATE_OF[RELATION_ID[match["relation"]]]:
                    found.append(Contradiction(match[0], said))
    return found


def report(name: str, tables: Sequence[Table]) -> tuple[str, list[str]]:
    """Returns a text on the contradictions in a data set, and the ids of its test stories without
    one; they are T.K/ROW unless each test story has an id of its own."""
    lines, notes, clean = [["file", "rows", "contradicted"]], [], []
    place: Counter[str] = Counter()  # rows of each test
    own = [row.id for table in tables if table.split == "test" for row in table.rows]
    has_ids = "" not in own and len(set(own)) == len(own)
    for table in tables:
        contradicted = 0
        for row in table.rows:
            test = f"{row.noise}.{row.k}"
            place[test] += table.split == "test"
            id, found = row.id if has_ids else f"{test}/{place[test]}", contradictions(row)
            contradicted += bool(found)
            if table.split == "test" and not found:
                clean.append(id)
            notes += [f"  {table.name}: {id}: {one.sentence}: {one.fact}" for one in found]
        lines.append([table.name, str(len(table.rows)), str(contradicted)])
    return "\n".join([name, plain_text(lines), *notes, ""]), clean
