"""Relations that the stated facts of a story imply for its query pair."""

from collections.abc import Sequence

import numpy as np

from generator.relations.deduction import derivable
from generator.relations.kinship import (
    KINSHIP,
    PREDICATE_ALGEBRA,
    PREDICATE_OF,
    RELATION_OF,
    UNKNOWN_GENDER,
)
from generator.relations.path_consistency import possible_relations
from generator.tables.rows import Row


def implied(rows: Sequence[Row]) -> list[list[int]]:
    """Returns the relations that the stated facts of each row imply for its query pair.

    Those of both genders are implied for a person of unknown gender. For relations other than
    kinship they are those that path consistency leaves.

    Args:
      rows: at least one, of one algebra.
    """
    width = max(len(row.relations) for row in rows)
    edges = np.zeros((len(rows), width, 2), np.int64)
    relations = np.full((len(rows), width), -1)  # where a row has fewer facts
    for i, row in enumerate(rows):
        size = len(row.relations)
        edges[i, :size] = np.reshape(row.edges[:size], (size, 2))
        relations[i, :size] = row.relations
    query = np.array([row.query for row in rows])
    if rows[0].algebra != KINSHIP:
        possible = possible_relations(edges, relations, query, rows[0].algebra)
        return [np.flatnonzero(found).tolist() for found in possible]
    people = max(len(row.names) for row in rows)
    predicates = np.where(relations < 0, -1, PREDICATE_OF[relations])
    found = derivable(edges, predicates, query, people, PREDICATE_ALGEBRA)
    result = []
    for follows, row in zip(found, rows, strict=True):
        gender = row.genders[row.query[1]]
        genders = slice(None) if gender == UNKNOWN_GENDER else gender
        result.append(RELATION_OF[np.flatnonzero(follows), genders].ravel().tolist())
    return result


def otherwise(rows: Sequence[Row]) -> list[str]:
    """Returns for each row how its facts or query can be misread so that the target follows, or an
    empty string. Genders make no difference.

    Args:
      rows: of one algebra.
    """
    if not rows:
        return []
    unknown = [row._replace(genders=(UNKNOWN_GENDER,) * len(row.names)) for row in rows]
    readings = {
        "facts are read as (Y, relation, X)": [
            row._replace(edges=tuple((y, x) for x, y in row.edges)) for row in unknown
        ],
        "the people of the query change places": [
            row._replace(query=row.query[::-1]) for row in unknown
        ],
    }
    found = [""] * len(rows)
    for reading, changed in readings.items():
        for i, (row, follows) in enumerate(zip(rows, implied(changed), strict=True)):
            if row.relations and row.target in follows:
                found[i] = found[i] or reading
    return found
