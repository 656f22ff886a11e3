"""The benchmark of 2018, CLUTRR v0.1 (Sinha et al. 2018): families, paths, distractor sentences.

    python -m generator workshop --out DIR         M3_train.csv, M3_test.csv, ... M6_test.csv
    python -m generator workshop --count-paths     the paper's table 2

A story states the k facts of a simple path through one family (Algorithm 1) in their order; between
them stand sentences about where its people work, what they play, and the like. Asked is what the
last person is to the first. The columns are the published ones of 2019; `task_name` is task_1.k, as
no fact is noise; `clean_story` is the story without its distractor sentences.

All paths of k facts in random families are equally likely, in either direction, if all their facts
and the answer are among the 15 relations and `generator.workshop.rules` proves the answer from
the facts. The last condition is not the paper's: "A's grandson is B, B's father is C" makes C a
son of A in one family and a son-in-law in another. At k = 3, 4, 5, 6 it leaves 38, 18, 8, 4 % of
all paths, with 55, 115, 208, 349 clauses. Left out with the others is the 1 % that the rules of
2019, which know no two people apart, get wrong. `--ambiguous=keep` draws all paths, as Algorithm 1
does.
"""

import argparse
import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import numpy as np

from generator.errors import InputError, Parser
from generator.files import atomic_write
from generator.kinship import GENDERS, NUM_RELATIONS, RELATION_OF, RELATIONS
from generator.workshop.paths import Family, Paths, count_paths, family, paths_of
from generator.workshop.rules import RELATIONS_2018, prove
from generator.workshop.text import DISTRACTORS, FACTS, KINDS, PEOPLE

COLUMNS = (
    "", "id", "story", "query", "text_query", "target", "text_target", "clean_story",
    "proof_state", "f_comb", "task_name", "story_edges", "edge_types", "query_edge", "genders",
    "syn_story", "node_mapping", "task_split",
)  # fmt: skip
SPLITS = ("train", "test")
BLOCK = 4096  # stories drawn at once; part of what a seed means
LONGEST = 25  # facts of a story: one more person than that, and letters run out

_IN_2018 = np.isin(np.arange(NUM_RELATIONS), RELATIONS_2018)
_SENTENCES = tuple(DISTRACTORS.values())


class Draw(NamedTuple):
    """All that is random about B stories of k facts with d distractor sentences per person."""

    path: np.ndarray  # [B] row of Paths
    gender: np.ndarray  # [B, k + 1] of the people on the path
    person: np.ndarray  # [B, k + 1] index in PEOPLE, one row without repetition
    fact: np.ndarray  # [B, k] template
    kind: np.ndarray  # [B, k + 1, d] of distractor, without repetition for one person
    sentence: np.ndarray  # [B, k + 1, d] within its kind
    order: np.ndarray  # [B, k + (k + 1) d] sentences of the story: the facts first and in order
    uuid: np.ndarray  # [B, 16] bytes


def draw(members: Family, paths: Paths, distractors: int, rng: np.random.Generator) -> Draw:
    """Draws up to `BLOCK` stories: those of a block whose relations are all among the 15."""
    k = paths.clause.shape[1]
    chance = paths.weight / paths.weight.sum()
    path = rng.choice(len(chance), BLOCK, p=chance)
    people = paths.people[path]  # [B, k + 1]

    # A child has a random gender, a partner the opposite one.
    born = rng.integers(0, 2, (BLOCK, len(members.head)))  # [B, P]
    gender = np.take_along_axis(born, members.head[people], 1) ^ (members.head[people] != people)
    facts, answer = _relations(paths, path, gender)
    kept = _IN_2018[facts].all(axis=1) & _IN_2018[answer]
    path, gender = path[kept], gender[kept]

    b = len(path)
    kind = rng.random((b, k + 1, len(KINDS))).argsort(axis=2)[..., :distractors]
    order = rng.random((b, k + (k + 1) * distractors)).argsort(axis=1)
    order[order < k] = np.tile(np.arange(k), b)  # the places of the facts stay, their order not
    return Draw(
        path=path,
        gender=gender,
        person=rng.random((b, len(PEOPLE))).argsort(axis=1)[:, : k + 1],
        fact=rng.integers(0, len(FACTS), (b, k)),
        kind=kind,
        sentence=rng.integers(0, np.array([len(s) for s in _SENTENCES])[kind]),
        order=order,
        uuid=np.frombuffer(rng.bytes(16 * b), np.uint8).reshape(b, 16),
    )


def _relations(paths: Paths, path: np.ndarray, gender: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The relations of the facts, [B, k], and of the answer, [B]."""
    facts = RELATION_OF[paths.clause[path], gender[:, 1:]]
    return facts, RELATION_OF[paths.answer[path], gender[:, -1]]


def rows(
    members: Family, paths: Paths, distractors: int, split: str, rng: np.random.Generator
) -> Iterator[tuple[str, ...]]:
    """Stories without end, as rows without their number: the columns `COLUMNS[1:]`."""
    k = paths.clause.shape[1]
    edges = str([(i, i + 1) for i in range(k)])
    people = range(k + 1)
    while True:
        block = draw(members, paths, distractors, rng)
        facts, answers = _relations(paths, block.path, block.gender)
        for path, gender, person, fact, kind, sentence, order, uuid, types, answer in zip(
            *(column.tolist() for column in block), facts.tolist(), answers.tolist(), strict=True
        ):
            names = [PEOPLE[p] for p in person]
            types = [RELATIONS[r] for r in types]
            stated = [
                FACTS[t].format(x=names[i], r=types[i], y=names[i + 1]) for i, t in enumerate(fact)
            ]
            told = stated + [
                _SENTENCES[a][s].format(names[i])
                for i in people
                for a, s in zip(kind[i], sentence[i], strict=True)
            ]
            target = RELATIONS[answer]
            yield (
                str(UUID(bytes=bytes(uuid), version=4)),
                " ".join([told[i] for i in order]),
                str((names[0], names[-1])),
                "",
                target,
                str([FACTS[0].format(x=names[0], r=target, y=names[-1])]),
                " ".join(stated),
                _proof_state(tuple(paths.clause[path].tolist()), names, types, gender),
                "-".join(types),
                f"task_1.{k}",
                edges,
                str(types),
                str((0, k)),
                ",".join(f"{names[i]}:{GENDERS[gender[i]]}" for i in people),
                "",
                str({p: i for i, p in enumerate(paths.people[path].tolist())}),
                split,
            )


def _proof_state(
    clause: tuple[int, ...], names: list[str], types: list[str], gender: list[int]
) -> str:
    """The proof from the root down, as published: each derived fact and the two it comes from."""
    proof = prove(clause)
    if proof is None:
        return "[]"
    derived = {(i, j): RELATIONS[RELATION_OF[p, gender[j]]] for i, _, j, p in proof.steps}
    known = {(i, i + 1): relation for i, relation in enumerate(types)} | derived

    def triple(i: int, j: int) -> tuple[str, str, str]:
        return names[i], known[i, j], names[j]

    return str([{triple(i, j): [triple(i, m), triple(m, j)]} for i, m, j, _ in proof.steps])


def write(path: Path, table: Iterator[tuple[str, ...]]) -> None:
    """Writes a CSV file; one that could not be finished is not left behind.

    Raises:
      InputError: the file cannot be written.
    """
    with atomic_write(path) as part, open(part, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((number, *row) for number, row in enumerate(table))


def _numbers(text: str) -> list[int]:
    try:
        return sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}, expected numbers such as 3,4,5,6") from None


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m generator workshop",
        allow_abbrev=False,
        description="The benchmark of 2018, CLUTRR v0.1: for each k the files Mk_train.csv and "
        "Mk_test.csv, in the published columns. In brackets: default; the paper's value.",
    )
    # fmt: off
    add = parser.add_argument
    add("--out", type=Path, metavar="DIR", help="folder to write to")
    add("--k", type=_numbers, default=[3, 4, 5, 6], metavar="K,K,...",
        help="facts per story, 2 or more [3,4,5,6; 3 to 6, section 2]")
    add("--train-k", type=_numbers, metavar="K,K,...",
        help="those of --k that get a training file [all]")
    add("--train-rows", type=int, default=4000, metavar="N",
        help="training stories for each k [%(default)s; 4000, section 2]")
    add("--test-rows", type=int, default=1000, metavar="N",
        help="test stories for each k [%(default)s; 1000, section 2]")
    add("--l-max", type=int, default=3, metavar="N",
        help="generations below the root couple [%(default)s; 3, table 2]")
    add("--c-min", type=int, default=3, metavar="N",
        help="fewest children of a couple [%(default)s; 3, table 2]")
    add("--c-max", type=int, default=3, metavar="N",
        help="most children of a couple [%(default)s; 3, table 2]")
    add("--distractors", type=int, default=8, metavar="D",
        help="distractor sentences per person, each of another of the kinds "
        f"{', '.join(KINDS)} [%(default)s; 8, section 2]")
    add("--ambiguous", choices=("drop", "keep"), default="drop",
        help="paths whose answer does not follow from their facts alone [%(default)s; keep]")
    add("--seed", type=int, default=0, metavar="N",
        help="same seed, same bytes [%(default)s; not given]")
    add("--count-paths", action="store_true",
        help="print table 2 instead: the unique relation paths of 3 and more people, "
        "up to one more than the largest --k, in families of --l-max and --c-max")
    # fmt: on
    return parser


def _check(settings: argparse.Namespace) -> None:
    """Raises InputError for settings outside their range."""
    ranges = {
        "k": (settings.k[0], 2, LONGEST),
        "train-rows": (settings.train_rows, 0, None),
        "test-rows": (settings.test_rows, 0, None),
        "l-max": (settings.l_max, 1, 100),
        "c-max": (settings.c_max, 1, 100),
        "c-min": (settings.c_min, 0, settings.c_max),
        "distractors": (settings.distractors, 0, len(KINDS)),
        "seed": (settings.seed, 0, None),
    }
    for name, (value, least, most) in ranges.items():
        if value < least or (most is not None and value > most):
            expected = f"{least} to {most}" if most is not None else f"{least} or more"
            raise InputError(f"workshop: --{name} is {value}, expected {expected}")
    if settings.k[-1] > LONGEST:
        raise InputError(f"workshop: --k is {settings.k[-1]}, expected 2 to {LONGEST}")
    if settings.train_k and not set(settings.train_k) <= set(settings.k):
        raise InputError(
            f"workshop: --train-k is {','.join(map(str, settings.train_k))}, expected some of --k"
        )
    if settings.out is None and not settings.count_paths:
        raise InputError("workshop: no folder to write to, expected --out DIR (or --count-paths)")


def print_counts(l_max: int, c_max: int, most_people: int) -> None:
    """Prints table 2: its path length counts people, one more than facts. Each path counts twice
    with gender, as the person that the answer is about may be male or female."""
    print("Path length  Unique paths  Unique paths with gender")
    for people in range(3, most_people + 1):
        count = count_paths(l_max, c_max, people)
        print(f"{people:11}  {count:12}  {2 * count:24}")


def main(argv: Sequence[str]) -> int:
    """The command `python -m generator workshop`; returns the exit code.

    Raises:
      InputError: settings that are no use, or a folder that cannot be written to.
    """
    settings = _parser().parse_args(argv)
    _check(settings)
    if settings.count_paths:
        print_counts(settings.l_max, settings.c_max, settings.k[-1] + 1)
        return 0
    drop = settings.ambiguous == "drop"
    # A path of k facts enters at most k + 1 of a couple's branches: more need not be listed.
    tables = {}
    for k in settings.k:
        members = family(settings.l_max, min(settings.c_max, k + 1))
        tables[k] = members, paths_of(members, k, settings.c_min, settings.c_max, sure=drop)
    try:
        settings.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{settings.out}: cannot be made a folder ({error.strerror})") from None
    for k, (members, paths) in tables.items():
        for split, count in zip(SPLITS, (settings.train_rows, settings.test_rows), strict=True):
            if split == "train" and k not in (settings.train_k or settings.k):
                continue
            rng = np.random.default_rng([settings.seed, k, SPLITS.index(split)])
            path = settings.out / f"M{k}_{split}.csv"
            write(path, islice(rows(members, paths, settings.distractors, split, rng), count))
            print(f"{path}: {count} stories")
    return 0
