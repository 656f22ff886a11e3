"""The published columns of a story, and the format of its cells.

The columns are those of the data sets that Sinha et al. (2019) released.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from generator.relations.kinship import GENDER_NAMES, KINSHIP, RELATIONS
from generator.tables.rows import Row

COLUMNS = (
    "", "id", "story", "query", "text_query", "target", "text_target", "clean_story",
    "proof_state", "f_comb", "task_name", "story_edges", "edge_types", "query_edge", "genders",
    "syn_story", "node_mapping", "task_split",
)  # fmt: skip


def format_row(
    row: Row,
    stated_target: list[str],  # sentences that state the answer
    # Steps (x, z, y, r, p, q) from the root: (x, r, y) follows from (x, p, z) and (z, q, y).
    proof: Iterable[Sequence[int]],
    family_nodes: Sequence[int],  # each person's index in the family
) -> tuple[str, ...]:
    """Returns the cells of a story of kinship, in the order of COLUMNS; the inverse of parsing."""
    words = [RELATIONS[r] for r in row.relations]
    facts = format_facts(row.names, row.genders, row.edges, words, row.query)
    return (
        str(row.row_index - 1),
        row.id,
        row.story,
        facts["query"],
        "",
        RELATIONS[row.target],
        str(stated_target),
        row.clean_story,
        _format_proof(proof, row.names),
        row.clause,
        f"task_{row.noise}.{row.k}",
        facts["story_edges"],
        facts["edge_types"],
        facts["query_edge"],
        facts["genders"],
        "",
        str({node: i for i, node in enumerate(family_nodes)}),
        row.split,
    )


def story_row(
    relations: Sequence[int], names: Sequence[str], query: tuple[int, int], k: int, **parts: Any
) -> Row:
    """Returns a row of kinship whose first k relations are the path; `parts` are other fields."""
    return Row(
        algebra=KINSHIP,
        relations=tuple(relations),
        names=tuple(names),
        query=query,
        query_names=(names[query[0]], names[query[1]]),
        clause="-".join(RELATIONS[r] for r in relations[:k]),
        k=k,
        **parts,
    )


def format_facts(
    names: Sequence[str],
    genders: Sequence[int],
    edges: Iterable[Sequence[int]],
    relations: Sequence[str],
    query: tuple[int, int],
) -> dict[str, str]:
    """Returns the cells of the facts and the question by column; `relations` are names."""
    x, y = query
    return {
        "query": f"({quoted(names[x])}, {quoted(names[y])})",
        "story_edges": str([*map(tuple, edges)]),
        "edge_types": str(list(relations)),
        "query_edge": f"({x}, {y})",
        "genders": ",".join(
            f"{quoted(name) if ',' in name else name}:{GENDER_NAMES[gender]}"
            for name, gender in zip(names, genders, strict=True)
        ),
    }


def quoted(name: str) -> str:
    """Returns a name in quotes, without escapes."""
    quote = '"' if "'" in name else "'"
    return f"{quote}{name}{quote}"


def _format_proof(steps: Iterable[Sequence[int]], names: Sequence[str]) -> str:
    """`[{fact: [fact, fact]}, ...]`, from the root."""
    triples = [
        ((names[x], RELATIONS[r], names[y]), (names[x], RELATIONS[p], names[z]),
         (names[z], RELATIONS[q], names[y]))
        for x, z, y, r, p, q in steps
    ]  # fmt: skip
    return str([{head: [first, second]} for head, first, second in triples])
