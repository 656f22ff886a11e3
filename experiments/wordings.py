"""Other wordings: a text model on sentences that are not the paraphrases.

Trains on 2,500 stories of k = 2, 3 in the words of each bank of `examples/other_wordings.py`, and
tests on 100 stories of each k = 2..10 in the same words, with new clauses. Not in any paper.

    python launch.py --config=experiments/wordings.py --workdir=runs/wordings

Hardware: the laptop scale takes 10 minutes on one core.

Result: near 1 where the words name the relations, also in records and in chatty sentences;
less where they are informal only, and nothing in a language whose words the model does not know.
"""

from pathlib import Path
from typing import Any

from clutrr_jax.experiment import MODEL, Experiment, Training, experiment_config
from examples.other_wordings import BANKS, templates
from experiments.figure5 import TESTS
from experiments.figure6 import write_with_bank
from generator.stories.config import Config
from generator.stories.text import Bank


def write_stories(settings: dict[str, Any], folder: Path) -> None:
    """Writes stories in the sentences of the bank with the name `settings["bank"]`."""
    bank = Bank(settings["bank"], templates(*BANKS[settings["bank"]]))
    write_with_bank(bank, Config.from_json(settings | {"bank": ""}), folder)


def training(bank: str) -> Training:
    """Returns the training on the sentences of one bank, with tests on all k."""
    return Training(
        name=bank,
        settings={
            "generate.bank": bank,
            "generate.hold_out": "clauses",
            "generate.train_rows": 1_250,
        },
        tests_by_cell={(bank, k, MODEL): (f"1.{k}",) for k in TESTS},
    )


def get_config():
    return experiment_config(
        "wordings",
        Experiment(
            column_names=("words", "k", "model"),
            trainings=tuple(map(training, BANKS)),
            models=("reader_prover",),
            laptop={"reader_prover": 1},
            write_stories=write_stories,
        ),
    )
