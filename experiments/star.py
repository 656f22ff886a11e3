"""Region and interval calculus: the tests of STaR (Khalid and Schockaert, ICLR 2025).

Trains on graphs of b = 1, 2, 3 paths of k = 2, 3, 4 facts, in RCC-8 and in Allen's interval
algebra, and tests on up to k = 10 and b = 8. Each path alone leaves several relations possible, all
paths together one.

    python launch.py --config=experiments/star.py --workdir=runs/star
    python -m clutrr_jax predict runs/star/rcc8/0/epignn --data star_rcc8.zip --out epignn.csv

The graphs are generated for each replica, with as many train rows as in the paper and an eighth of
its test rows. The authors publish test files, but no train files: the second command predicts
those.

Hardware: the laptop scale takes about four hours on one core, if the Edge Transformer has
`--config.edge_transformer.dim=64`, and some hours more with its default.

Expected result: prover and epignn near 1 at every length; in the paper, models that follow a
single path (NCRL) are far below. The paper prints figure 4, a plot, and no table: there is nothing
to put next to these rows.
"""

from pathlib import Path
from typing import Any

from clutrr_jax.experiment import MODEL, Experiment, Training, experiment_config
from generator.networks.command import parser, write_networks

# One replica each.
FEW = (
    "edge_transformer", "rat", "transformer_facts", "ctp_attentive", "nbfnet", "rgcn", "ncrl", "gat"
)  # fmt: skip
TESTS = {1: range(2, 11), 2: (2, 4), 4: (2, 4), 8: (2, 4)}  # paths b -> lengths k


def write_graphs(settings: dict[str, Any], folder: Path) -> None:
    """Writes the graphs of one algebra."""
    options = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    write_networks(parser().parse_args([*options, f"--out={folder}"]))


def training(algebra: str) -> Training:
    """Returns the training on one algebra."""
    return Training(
        name=algebra,
        settings={"generate.algebra": algebra},
        tests_by_cell={
            (f"{algebra}, b = {b}", k, MODEL): (f"b{b}.{k}",) for b, ks in TESTS.items() for k in ks
        },
    )


def get_config():
    return experiment_config(
        "star",
        Experiment(
            column_names=("algebra, paths", "k", "model"),
            trainings=(training("rcc8"), training("interval")),
            models=("prover", "epignn", *FEW),
            laptop={"prover": 3, "epignn": 3} | dict.fromkeys(FEW, 1),
            # All settings of this generator; each training sets its algebra.
            generate={
                "algebra": "",
                "train": ",".join(f"{b}.{k}" for b in (1, 2, 3) for k in (2, 3, 4)),
                "test": ",".join(f"{b}.{k}" for b, ks in TESTS.items() for k in ks),
                "train_rows": 800,
                "test_rows": 100,
                "distractors": 0,
                "seed": 0,
            },
            write_stories=write_graphs,
        ),
    )
