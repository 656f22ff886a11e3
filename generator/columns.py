"""The published columns of a story, and the format of its cells.

The columns are those of the data sets that Sinha et al. (2019) released.
"""

from collections.abc import Iterable, Sequence

from generator.cells import quoted
from generator.kinship import GENDER_NAMES, RELATIONS

COLUMNS = (
    "", "id", "story", "query", "text_query", "target", "text_target", "clean_story",
    "proof_state", "f_comb", "task_name", "story_edges", "edge_types", "query_edge", "genders",
    "syn_story", "node_mapping", "task_split",
)  # fmt: skip


def format_row(
    *,
    index: int,  # of the row in its file, from 0
    uuid: str,
    story: str,  # with names in [brackets]
    clean_story: str,  # without noise
    stated_target: list[str],  # sentences that state the answer
    names: Sequence[str],
    genders: Sequence[int],  # index in GENDERS
    edges: Iterable[Sequence[int]],  # people (x, y) of the facts, the path first
    relations: Sequence[int],  # of the facts, index in RELATIONS
    query: tuple[int, int],
    target: int,
    # Steps (x, z, y, r, p, q) from the root: (x, r, y) follows from (x, p, z) and (z, q, y).
    proof: Iterable[Sequence[int]],
    family_nodes: Sequence[int],  # each person's index in the family
    task: str,  # such as "1.3"
    k: int,  # number of facts on the path
    split: str,  # train, dev or test
) -> tuple[str, ...]:
    """Returns the cells of one story, in the order of COLUMNS."""
    words = [RELATIONS[r] for r in relations]
    facts = format_facts(names, genders, edges, words, query)
    return (
        str(index),
        uuid,
        story,
        facts["query"],
        "",
        RELATIONS[target],
        str(stated_target),
        clean_story,
        _format_proof(proof, names),
        "-".join(words[:k]),
        f"task_{task}",
        facts["story_edges"],
        facts["edge_types"],
        facts["query_edge"],
        facts["genders"],
        "",
        str({node: i for i, node in enumerate(family_nodes)}),
        split,
    )


def format_facts(
    names: Sequence[str],
    genders: Sequence[int],
    edges: Iterable[Sequence[int]],
    relations: Sequence[str],
    query: tuple[int, int],
) -> dict[str, str]:
    """Returns the cells of the facts and the question by column.

    `relations` are names; the other arguments are those of `format_row`.
    """
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


def _format_proof(steps: Iterable[Sequence[int]], names: Sequence[str]) -> str:
    """`[{fact: [fact, fact]}, ...]`, from the root."""
    triples = [
        ((names[x], RELATIONS[r], names[y]), (names[x], RELATIONS[p], names[z]),
         (names[z], RELATIONS[q], names[y]))
        for x, z, y, r, p, q in steps
    ]  # fmt: skip
    return str([{head: [first, second]} for head, first, second in triples])
