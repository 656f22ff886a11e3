"""Combinatorial generalisation: table 1 of Sinha et al. 2018, and figure 2, which draws it.

Train on stories of k facts, test on those of 3, 4, 5 and 6, for k = 3, 4, 5, 6: the benchmark of
2018, with distractor sentences. What comes out is that the LSTM is best where it was trained, and
the graph networks elsewhere. No data were released: the stories are generated, 4,000 to train on
and 1,000 to test on for each length.

    python launch.py --config=experiments/workshop_table1.py --workdir=runs/workshop_table1 \\
        --config.scale=laptop

The paper gives no errors and no number of epochs or runs. The laptop scale took 16
minutes on two cores.
"""

from pathlib import Path
from typing import Any

from experiments.grid import claims
from experiments.grid.definition import MODEL, Average, Grid, Training, grid_config
from experiments.grid.published import MODELS_2018, WORKSHOP_TABLE_1
from generator.workshop import command

LENGTHS = range(3, 7)


def write(settings: dict[str, Any], folder: Path) -> None:
    """The benchmark of 2018, with training stories of one length."""
    command.main([
        f"--out={folder}", f"--train-k={settings['train']}", f"--k={settings['test']}",
        f"--train-rows={settings['train_rows']}", f"--test-rows={settings['test_rows']}",
        f"--seed={settings['seed']}",
    ])  # fmt: skip


def mean(k: int) -> Average:
    """Of the tests of k facts over all trainings: the right panel of figure 2."""
    pairs = tuple((train, k) for train in LENGTHS)
    published = {
        model: sum(WORKSHOP_TABLE_1[*pair, model].mean for pair in pairs) / len(pairs)
        for model in MODELS_2018
    }
    return Average(pairs, published)


def get_config():
    trainings = tuple(
        Training(
            name=f"M{train}",
            settings={"generate.train": str(train), "generate.test": ",".join(map(str, LENGTHS))},
            reads={(train, k, MODEL): (f"1.{k}",) for k in LENGTHS},
        )
        for train in LENGTHS
    )
    return grid_config(
        "workshop_table1",
        Grid(
            heads=("train k", "k", "model"),
            trainings=trainings,
            models=MODELS_2018,
            laptop={"bilstm_2018": (1, 6), "gnn_2018_mean": (1, 3), "gnn_2018_attention": (1, 3)},
            published=WORKSHOP_TABLE_1,
            averages={("mean", k): mean(k) for k in LENGTHS},
            claims=claims.WORKSHOP_TABLE_1,
            stories={"train_rows": 4000, "test_rows": 1000},
            write=write,
            heeds=("train", "test", "train_rows", "test_rows", "seed"),
        ),
    )
