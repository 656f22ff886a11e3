"""Combinatorial generalisation: table 1 of Sinha et al. 2018, and figure 2, its plot.

Trains on stories of k = 3, 4, 5 or 6 facts and tests on each of these lengths, on the benchmark of
2018 with its distractor sentences. No data were released; the stories are generated, 4,000 train
and 1,000 test stories per length.

    python launch.py --config=experiments/workshop_table1.py --workdir=runs/workshop_table1 \\
        --config.scale=laptop

Hardware: one LSTM takes up to 45 minutes on one core. The graph networks have converged after 2,000
steps (`--config.models=gnn_2018_mean,gnn_2018_attention --config.train.steps=2000`).

Expected result: in the paper the LSTM is best on the length that it was trained on, the graph
networks on other lengths; docs/workshop.md has ours. The paper gives neither errors nor epochs nor
runs.
"""

from pathlib import Path
from typing import Any

from clutrr_jax.experiment import MODEL, Average, Experiment, Training, experiment_config
from experiments import claims
from experiments.published.clutrr import MODELS_2018, WORKSHOP_TABLE_1
from generator.workshop import data_set

LENGTHS = range(3, 7)  # k in training and tests


def write_stories(settings: dict[str, Any], folder: Path) -> None:
    """Writes the benchmark of 2018 with train stories of one length."""
    data_set.main([
        f"--out={folder}", f"--train-k={settings['train']}", f"--k={settings['test']}",
        f"--train-rows={settings['train_rows']}", f"--test-rows={settings['test_rows']}",
        f"--seed={settings['seed']}",
    ])  # fmt: skip


def mean(k: int) -> Average:
    """Returns the mean of the tests of length k over all trainings, as in figure 2, right."""
    pairs = tuple((train, k) for train in LENGTHS)
    published = {
        model: sum(WORKSHOP_TABLE_1[*pair, model].mean for pair in pairs) / len(pairs)
        for model in MODELS_2018
    }
    return Average(pairs, published)


def training(train: int) -> Training:
    """Returns the training on one length, with tests on all lengths."""
    return Training(
        name=f"M{train}",
        settings={"generate.train": str(train), "generate.test": ",".join(map(str, LENGTHS))},
        tests_by_cell={(train, k, MODEL): (f"1.{k}",) for k in LENGTHS},
    )


def get_config():
    return experiment_config(
        "workshop_table1",
        Experiment(
            column_names=("train k", "k", "model"),
            trainings=tuple(map(training, LENGTHS)),
            models=MODELS_2018,
            laptop=dict.fromkeys(MODELS_2018, 1),
            published=WORKSHOP_TABLE_1,
            averages={("mean", k): mean(k) for k in LENGTHS},
            claims=claims.WORKSHOP_TABLE_1,
            # All settings of this generator; each training sets its lengths.
            generate={"train": "", "test": "", "train_rows": 4000, "test_rows": 1000, "seed": 0},
            write_stories=write_stories,
        ),
    )
