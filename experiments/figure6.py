"""The benefit of structure: figure 6 of Sinha et al. 2019 (section 4.3, Q2, and appendix 1.3).

As figure 5, with stories that are easier to read: a fifth of the paraphrases, and the same ones in
training and tests. No data were released; the stories are generated.

    python launch.py --config=experiments/figure6.py --workdir=runs/figure6 --config.scale=laptop

Hardware: the laptop scale takes a little over two hours on one core.

Expected result: in the paper the text models come close to the GAT; it prints only a plot. Ours is
in docs/results.md.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from clutrr_jax.experiment import Experiment, Training, experiment_config
from experiments import claims
from experiments.figure5 import RELEASES, training
from experiments.published.clutrr import MODELS_2019
from generator.paraphrases.load import load_bank, save_bank
from generator.stories.config import Config
from generator.stories.hold_out import split_bank
from generator.stories.text import Bank
from generator.write import write_dataset


def write_stories(settings: dict[str, Any], folder: Path) -> None:
    """Writes stories that use only the paraphrases which these settings hold out for the tests."""
    config = Config.from_json(settings)
    bank = split_bank(load_bank(config), config).test
    write_with_bank(bank, replace(config, language="paraphrase", hold_out=("clauses",)), folder)


def write_with_bank(bank: Bank, config: Config, folder: Path) -> None:
    """Writes stories in the sentences of a bank."""
    path = folder.resolve() / "bank.json"
    save_bank(bank, path)
    write_dataset(replace(config, bank=str(path)), folder)


def training_on_unseen_clauses(train: str) -> Training:
    """Returns the training of figure 5; `write_stories` decides what is held out."""
    of_figure5 = training(train)
    settings = {**of_figure5.settings, "generate.hold_out": "clauses,paraphrases"}
    return replace(of_figure5, settings=settings)


def get_config():
    return experiment_config(
        "figure6",
        Experiment(
            column_names=("train k", "k", "model"),
            trainings=tuple(map(training_on_unseen_clauses, RELEASES)),
            models=MODELS_2019,
            laptop={"gat": 5, "bilstm_attention": 2},
            claims=claims.FIGURE_6,
            write_stories=write_stories,
        ),
    )
