"""The benchmark of 2018, CLUTRR v0.1 (Sinha et al. 2018).

DIR receives M3_train.csv, ... M6_test.csv and config.json (settings).

A story states the k facts of a simple path through a family (Algorithm 1) in order, interleaved
with sentences about the jobs, hobbies, etc. of its people. The question is the relation of the last
person to the first. The columns are those of the data released in 2019. `task_name` is task_1.k,
because no fact is noise; `clean_story` is the story without distractor sentences.

All paths of k facts in random families are equally likely, in either direction, if all facts and
the answer have one of the 15 relations and `generator.workshop.rules` derives the answer from the
facts. The paper does not have the last condition: "A's grandson is B, B's father is C" makes C a
son of A in one family and a son-in-law in another. For k = 3, 4, 5, 6 the condition keeps 38, 18,
8 and 4 % of all paths, with 55, 115, 208 and 349 clauses. It also excludes the 1 % of paths for
which the rules of 2019 derive a wrong answer. `--ambiguous=keep` keeps all paths, as Algorithm 1
does. In brackets below: the default; the value in the paper.
"""

import argparse
import json
from collections.abc import Sequence
from itertools import islice
from math import inf
from pathlib import Path

import numpy as np

from generator import VERSION
from generator.errors import InputError, Parser, check_range
from generator.files import csv_text, write_text
from generator.tables.columns import COLUMNS
from generator.workshop.paths import family, paths_of
from generator.workshop.stories import story_rows
from generator.workshop.text import KINDS, PEOPLE
from generator.write import write_description

SPLITS = ("train", "test")
MAX_FACTS = len(PEOPLE) - 1
# option: default, lowest and highest value, meaning, value in the paper
_NUMBERS = {
    "train-rows": (4000, 0, inf, "train stories for each k", "4000, section 2"),
    "test-rows": (1000, 0, inf, "test stories for each k", "1000, section 2"),
    "l-max": (3, 1, 100, "generations below the root couple", "3, table 2"),
    "c-min": (3, 0, 100, "minimum number of children per couple", "3, table 2"),
    "c-max": (3, 1, 100, "maximum number of children per couple", "3, table 2"),
    "distractors": (8, 0, len(KINDS), "distractor sentences per person, of different kinds: "
                    + ", ".join(KINDS), "8, section 2"),
}  # fmt: skip


def _int_list(text: str) -> list[int]:
    try:
        return sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}, expected numbers such as 3,4,5,6") from None


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m generator workshop", allow_abbrev=False, description=__doc__)
    # fmt: off
    add = parser.add_argument
    add("--out", type=Path, metavar="DIR", required=True, help="output folder")
    add("--k", type=_int_list, default=[3, 4, 5, 6], metavar="K,K,...",
        help="facts per story, 2 or more [3,4,5,6; 3 to 6, section 2]")
    add("--train-k", type=_int_list, metavar="K,K,...",
        help="subset of --k for which a train file is written [all]")
    for name, (default, _, _, help_text, paper) in _NUMBERS.items():
        add(f"--{name}", type=int, default=default, metavar="N",
            help=f"{help_text} [{default}; {paper}]")
    add("--ambiguous", choices=("drop", "keep"), default="drop",
        help="drop or keep paths whose facts do not imply the answer [%(default)s; keep]")
    add("--seed", type=int, default=0, metavar="N",
        help="random seed; the same seed and settings give the same files [%(default)s; unknown]")
    # fmt: on
    return parser


def _check(settings: argparse.Namespace) -> None:
    for k in settings.k:
        check_range("workshop: --k", k, 2, MAX_FACTS)
    for name, (_, low, high, _, _) in _NUMBERS.items():
        check_range(f"workshop: --{name}", vars(settings)[name.replace("-", "_")], low, high)
    check_range("workshop: --c-min", settings.c_min, 0, settings.c_max)
    check_range("workshop: --seed", settings.seed, 0)
    if settings.train_k and not set(settings.train_k) <= set(settings.k):
        train_k = ",".join(map(str, settings.train_k))
        raise InputError(f"workshop: --train-k is {train_k}, expected a subset of --k")


def main(argv: Sequence[str]) -> int:
    """Runs the command."""
    settings = _parser().parse_args(argv)
    _check(settings)
    drop = settings.ambiguous == "drop"
    families_and_paths = {}  # for all k before the first file, so that errors write nothing
    for k in settings.k:
        # A path of k facts visits at most k + 1 children of a couple.
        members = family(settings.l_max, min(settings.c_max, k + 1))
        paths = paths_of(members, k, settings.c_min, settings.c_max, drop)
        families_and_paths[k] = members, paths
    described = {name: value for name, value in vars(settings).items() if name != "out"}
    content = {"generator": f"clutrr-jax {VERSION} workshop", "settings": described}
    write_description(settings.out, json.dumps(content) + "\n")
    for k, (members, paths) in families_and_paths.items():
        for split, count in zip(SPLITS, (settings.train_rows, settings.test_rows), strict=True):
            if split == "train" and k not in (settings.train_k or settings.k):
                continue
            rng = np.random.default_rng([settings.seed, k, SPLITS.index(split)])
            path = settings.out / f"M{k}_{split}.csv"
            rows = story_rows(members, paths, settings.distractors, split, rng)
            write_text(path, csv_text([COLUMNS, *islice(rows, count)]))
            print(f"{path}: {count} stories")
    return 0
