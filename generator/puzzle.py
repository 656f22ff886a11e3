"""The published columns of a story (`../docs` and the README describe them)."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from generator.kinship import GENDERS, RELATIONS
from generator.names import ALL_NAMES, NAMES, bracketed, name_numbers
from generator.stories import Stories
from generator.text import Bank, texts

COLUMNS = (
    "", "id", "story", "query", "text_query", "target", "text_target", "clean_story",
    "proof_state", "f_comb", "task_name", "story_edges", "edge_types", "query_edge", "genders",
    "syn_story", "node_mapping", "task_split",
)  # fmt: skip

_GENDERED = [
    f"{name}:{gender}" for gender, names in zip(GENDERS, NAMES, strict=True) for name in names
]


def rows(
    stories: Stories, split: str, first: int, bank: Bank, rng: np.random.Generator
) -> Iterator[tuple[str, ...]]:
    """The cells of each story, in the order of COLUMNS. The rows are numbered from `first`."""
    b = len(stories)
    k = stories.task.k
    people = name_numbers(stories.gender, stories.name)
    text = texts(stories, bracketed(stories.gender, stories.name), bank, rng)
    uuids = _uuids(rng.spawn(1)[0].bytes(16 * b))
    task = f"task_{stories.task}"
    edges = stories.edges()
    relations = stories.edge_relations()
    sizes = (relations >= 0).sum(1).tolist()
    edge_bytes, edge_width = edges.astype(np.int8).tobytes(), 2 * edges.shape[1]
    type_bytes, type_width = relations.astype(np.int8).tobytes(), relations.shape[1]
    last = stories.query()[:, 1].tolist()
    family_node = stories.family_node.tolist()
    target = stories.target.tolist()
    steps = np.concatenate([stories.proof_people, stories.proof_relations], axis=2).tolist()
    for row, (story, clean, stated) in enumerate(text):
        names = [ALL_NAMES[p] for p in people[row]]
        origin = [f"{f}: {i}" for i, f in enumerate(family_node[row][: len(names)])]
        y = last[row]
        types = type_bytes[row * type_width : row * type_width + sizes[row]]
        yield (
            str(first + row),
            uuids[row],
            story,
            f"('{names[0]}', '{names[y]}')",
            "",
            RELATIONS[target[row]],
            repr(stated),
            clean,
            _proof(steps[row], names),
            _clause(types[:k]),
            task,
            _edges(edge_bytes[row * edge_width : row * edge_width + 2 * sizes[row]]),
            _types(types),
            f"(0, {y})",
            ",".join([_GENDERED[p] for p in people[row]]),
            "",
            f"{{{', '.join(origin)}}}",
            split,
        )


def _proof(steps: list[list[int]], names: list[str]) -> str:
    """`[{fact: [fact, fact]}, ...]`: what each step resolves, the root first."""
    told = []
    for x, z, y, head, first, second in steps:
        a, b, c = names[x], names[z], names[y]
        told.append(
            f"{{('{a}', '{RELATIONS[head]}', '{c}'): [('{a}', '{RELATIONS[first]}', '{b}'), "
            f"('{b}', '{RELATIONS[second]}', '{c}')]}}"
        )
    return f"[{', '.join(told)}]"


@lru_cache(1 << 14)
def _edges(pairs: bytes) -> str:
    return str(list(zip(pairs[::2], pairs[1::2], strict=True)))


@lru_cache(1 << 14)
def _types(relations: bytes) -> str:
    return str([RELATIONS[r] for r in relations])


@lru_cache(1 << 14)
def _clause(relations: bytes) -> str:
    return "-".join([RELATIONS[r] for r in relations])


def _uuids(chance: bytes) -> list[str]:
    """uuids of version 4 from 16 random bytes each."""
    raw = np.frombuffer(chance, np.uint8).reshape(-1, 16).copy()
    raw[:, 6] = raw[:, 6] & 0x0F | 0x40
    raw[:, 8] = raw[:, 8] & 0x3F | 0x80
    digits = raw.tobytes().hex()
    return [
        f"{digits[i : i + 8]}-{digits[i + 8 : i + 12]}-{digits[i + 12 : i + 16]}-"
        f"{digits[i + 16 : i + 20]}-{digits[i + 20 : i + 32]}"
        for i in range(0, len(digits), 32)
    ]
