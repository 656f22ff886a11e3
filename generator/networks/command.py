"""`python -m generator --algebra NAME`: graphs of facts as in STaR (Khalid and Schockaert 2025)."""

import argparse
import json
import re
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np

from generator import VERSION
from generator.errors import InputError, Parser, check_range
from generator.files import csv_text
from generator.networks.sampler import Sampler, cyclic, max_elements
from generator.relations.algebra import Algebra
from generator.relations.algebras import NAMES, find_algebra, write_algebra
from generator.splits import splits_in
from generator.stories.config import MAX_ROWS, parse_pairs
from generator.stories.render import Piece
from generator.tables.cells import MAX_PEOPLE
from generator.tables.columns import quoted
from generator.write import write_description, write_files

COLUMNS = ("", "edges", "edge_labels", "query_edge", "query_label")
BLOCK = 2048  # graphs with the same random numbers
_SPLITS = ("train", "test")
_TRAIN = ",".join(f"{b}.{k}" for b in (1, 2, 3) for k in (2, 3, 4))
_TEST = (*(f"1.{k}" for k in range(2, 11)), "2.2", "2.4", "4.2", "4.4", "8.2", "8.4")


def parser(prog: str = "python -m generator") -> argparse.ArgumentParser:
    """The parser of the options."""
    found = Parser(
        prog=prog,
        description="Generates graphs with B paths of K facts between two elements, of which one "
        "relation is possible: a file for each cell B.K, algebra.json, config.json.",
        epilog="In brackets: the default.",
        allow_abbrev=False,
    )
    add = found.add_argument
    # fmt: off
    add("--algebra", type=find_algebra, required=True, metavar="NAME",
        help=f"{', '.join(NAMES[1:])} or a JSON file; the options of {NAMES[0]} differ")
    add("--out", type=Path, required=True, metavar="DIR", help="output folder")
    add("--workers", type=int, default=1, metavar="N",
        help="number of processes; does not change the output [1]")
    add("--train", type=parse_pairs, default=_TRAIN, metavar="LIST",
        help="cells B.K of the train files, joined by commas [%(default)s, as STaR]")
    add("--test", type=parse_pairs, default=",".join(_TEST), metavar="LIST",
        help="cells B.K of the tests [%(default)s]")
    add("--train-rows", type=int, default=800, metavar="N",
        help="train graphs per cell and label [%(default)s, as STaR]")
    add("--test-rows", type=int, default=100, metavar="N",
        help="test graphs per cell and label [%(default)s; STaR 800]")
    add("--distractors", type=int, default=0, metavar="N",
        help="paths of 1 to K random facts to new elements, per graph [%(default)s]")
    add("--seed", type=int, default=0, metavar="N",
        help="random seed; the same seed and settings give the same files [%(default)s]")
    # fmt: on
    return found


def render(sampler: Sampler, distractors: int, seed: int, piece: Piece) -> bytes:
    """Returns a piece as CSV: graphs in place of stories, and a cell B.K in place of a task."""
    names, task = sampler.algebra.relations, piece.task
    labels = cyclic(sampler.labels(task.noise), piece.first, piece.size)
    rng = np.random.default_rng([seed, _SPLITS.index(piece.split), *task, piece.block])
    graphs = sampler.graphs(labels, task, distractors, rng)
    rows = [] if piece.first else [COLUMNS]
    for i, (edges, relations, size, label) in enumerate(zip(*graphs, labels, strict=True)):
        stated = relations >= 0
        facts = ", ".join(map(str, map(tuple, edges[stated].tolist())))
        words = ", ".join(quoted(names[relation]) for relation in relations[stated].tolist())
        row = (
            str(piece.first + i),
            f"[{facts}]",
            f"[{words}]",
            str((0, int(size) - 1)),
            names[label],
        )
        rows.append(row)
    return csv_text(rows).encode()


def _check(options: argparse.Namespace) -> Sampler:
    """Returns the sampler. Raises InputError for options that cannot be used."""
    algebra: Algebra = options.algebra
    check_range("--workers", options.workers, 1)
    if algebra.is_kinship:
        raise InputError(f"--algebra: relations of {NAMES[0]}, expected --algebra {NAMES[0]}")
    check_range("--seed", options.seed, 0, 2**63 - 1)
    check_range("--distractors", options.distractors, 0, MAX_PEOPLE)
    for split in _SPLITS:
        check_range(f"--{split}-rows", vars(options)[f"{split}_rows"], 0, MAX_ROWS)
    tasks = (*options.train, *options.test)
    for task in tasks:
        check_range(f"cell {task}: B", task.noise, 1)
        check_range(f"cell {task}: K", task.k, 2)
        if (most := max_elements(task, options.distractors)) > MAX_PEOPLE:
            raise InputError(
                f"cell {task}: graphs of up to {most} elements, expected at most {MAX_PEOPLE}"
            )
    sampler = Sampler(algebra, tasks)
    for task in tasks:
        if not len(sampler.labels(task.noise)):
            raise InputError(
                f"cell {task}: {algebra.name} has no relation that {task.noise} paths leave alone; "
                "expected more paths, or pairs with a single head"
            )
    return sampler


def _files(options: argparse.Namespace, sampler: Sampler) -> dict[Path, list[Piece]]:
    name = re.sub(r"[^A-Za-z0-9]+", "-", options.algebra.name).strip("-")
    name = "algebra" if not name or splits_in(name) else name
    files = {}
    for split in _SPLITS:
        for task in vars(options)[split]:
            rows = vars(options)[f"{split}_rows"] * len(sampler.labels(task.noise))
            path = options.out / f"{split}_{name}_k_{task.k}_b_{task.noise}.csv"
            files[path] = [
                Piece(split, task, start // BLOCK, min(BLOCK, rows - start), start)
                for start in range(0, rows, BLOCK)
            ]
    return {path: parts for path, parts in files.items() if parts}


def write_networks(options: argparse.Namespace) -> list[Path]:
    """Writes a data set with the options of `parser`, of which existing files are kept, and returns
    its tables. Raises InputError for options that cannot be used."""
    sampler = _check(options)
    files = _files(options, sampler)
    if not files:
        raise InputError("no graphs: expected a cell and a number of rows above 0")
    algebra = json.dumps(options.algebra.to_json())
    settings = {
        name: ",".join(map(str, value)) if isinstance(value, tuple) else value
        for name, value in vars(options).items()
        if name not in ("algebra", "out", "workers")
    }
    content = {
        "generator": f"clutrr-jax {VERSION}",
        "algebra": {"name": options.algebra.name, "sha256": sha256(algebra.encode()).hexdigest()},
        "settings": settings,
        "files": [path.name for path in files],
    }
    write_description(options.out, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    write_algebra(options.out, options.algebra)
    render_piece = partial(render, sampler, options.distractors, options.seed)
    return write_files(files, render_piece, options.workers)
