"""Reading error and reasoning error apart, for every text model.

Train on stories of clause length k = 2, 3; test by whether the clauses, and whether the
paraphrases, were seen in training or are new (held out), each apart, and by k; the same stories are
told in both kinds of paraphrases. Beside what a model says to the text stand, for the models that
extract a graph from it, the same with one half of the work, or all, taken away:

    MODEL                        the graph that it extracts, by the rules that it has learned
    MODEL: 16 rules              the graph that it extracts, by the benchmark's 16 rules
    MODEL: gold graph            the stated facts, by the rules that it has learned
    MODEL: gold graph, 16 rules  the stated facts, by the 16 rules

The reading error is what the second lacks to the last, the reasoning error what the third does.
The clauses of k = 2 are all trained on, so that all rules are seen, and every clause of k > 3 is
new; the other cells of the table stay empty. The tests in the folder of a run are of the tasks T.K
with T = 1 (all new), 8 (seen paraphrases), 9 (seen clauses) and 10 (both seen).

    python launch.py --config=experiments/diagnosis.py --workdir=runs/diagnosis \\
        --config.scale=laptop

`--config.models=` takes any text models, `--config.scale=paper` trains all but those over a frozen
BERT ten times.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from clutrr_jax.models import MODELS
from experiments.grid.definition import MODEL, Grid, Training, grid_config
from generator.blocks import BLOCK
from generator.config import Config, Task
from generator.files import atomic_write
from generator.hold_out import split_bank
from generator.paraphrases.load import load_bank
from generator.write import Piece, Renderer, write_dataset

TRAIN, TESTS = (2, 3), range(2, 11)
SIX_EPOCHS = (
    "bilstm_attention", "bilstm_mean", "bilstm_last", "bilstm_2018", "mac", "rn",
    "gnn_2018_mean", "gnn_2018_attention",
)  # fmt: skip
# (clauses, paraphrases) -> T, and the k that there are
KINDS = {
    ("seen", "seen"): (10, (2, 3)),
    ("seen", "new"): (9, (2, 3)),
    ("new", "seen"): (8, range(3, 11)),
    ("new", "new"): (1, range(3, 11)),
}


def tests(kind: tuple[str, str], k: int) -> tuple[str, ...]:
    """The tests T.K of a cell of the table: one, or none."""
    number, lengths = KINDS[kind]
    return (f"{number}.{k}",) if k in lengths else ()


def panel(kind: tuple[str, str]) -> str:
    """Of the table and of the picture."""
    return "{} clauses, {} words".format(*kind)


def write(settings: dict[str, Any], folder: Path) -> None:
    """A data set with clauses and paraphrases held out, and beside it tests of the train clauses,
    of the train paraphrases, and of both: as many stories of each."""
    config = Config.from_json(settings)
    write_dataset(config, folder)
    rows = config.rows("test", config.test[0])
    banks = split_bank(load_bank(config), config)
    turned = replace(banks, train=banks.test, test=banks.train)
    config = replace(config, dev_rows=rows)  # dev stories are drawn like train ones: same clauses
    for (clauses, paraphrases), (number, lengths) in KINDS.items():
        split = "dev" if clauses == "seen" else "test"
        is_own = (split == "dev") == (paraphrases == "seen")
        render = Renderer(config, banks if is_own else turned, "csv")
        for k in lengths:
            path = folder / f"{number}.{k}_test.csv"
            if not path.exists():
                parts = b"".join(map(render, _pieces(split, k, rows)))
                with atomic_write(path) as part:
                    part.write_bytes(parts.replace(b"task_1.%d" % k, b"task_%d.%d" % (number, k)))


def _pieces(split: str, k: int, rows: int) -> Iterator[Piece]:
    for first in range(0, rows, BLOCK):
        yield Piece(split, Task(1, k), first // BLOCK, min(BLOCK, rows - first), first)


def get_config():
    return grid_config(
        "diagnosis",
        Grid(
            heads=("tests", "k", "model"),
            trainings=(
                Training(
                    name="k23",
                    settings={
                        "generate.train": ",".join(f"1.{k}" for k in TRAIN),
                        "generate.test": ",".join(f"1.{k}" for k in TESTS if k > 2),
                        "generate.hold_out": "clauses,paraphrases",
                    },
                    reads={
                        (panel(kind), k, MODEL): tests(kind, k) for kind in KINDS for k in TESTS
                    },
                ),
            ),
            models=tuple(name for name, spec in MODELS.items() if spec.kind == "tokens"),
            # Not rmc, of which an epoch takes five minutes, and none that wants a BERT.
            laptop={"reader_prover": (1, 15)} | dict.fromkeys(SIX_EPOCHS, (1, 6)),
            claims={},
            write=write,
            variants=True,
            note="Words: the paraphrases. New: held out in training. The clauses of k = 2 are all "
            "trained on, and every clause of k > 3 is new, so that the other cells are empty. Of a "
            "model that extracts a graph from the text, 16 rules: the extracted graph by the rules "
            "of the benchmark; gold graph: the stated facts by those that it has learned. The "
            "reading error is what the first lacks to gold graph, 16 rules; the reasoning error is "
            "what the second does.",
        ),
    )
