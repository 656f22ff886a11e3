"""The benefit of structure: figure 6 of Sinha et al. 2019 (section 4.3, Q2, and appendix 1.3).

Figure 5 with the difficulty of reading taken away: a fifth of the paraphrases, the same ones in
training and in the tests. What comes out is that the text models come close to the graph model.
The picture has no numbers to compare with, and no data were released: the stories are generated.

    python launch.py --config=experiments/figure6.py --workdir=runs/figure6 --config.scale=laptop

The laptop scale is estimated at 30 minutes on two cores.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.figure5 import RELEASES, training
from experiments.grid import claims
from experiments.grid.definition import Grid, grid_config
from experiments.grid.published import MODELS_2019
from generator.config import Config
from generator.hold_out import split_bank
from generator.paraphrases.importer import save_bank
from generator.paraphrases.load import load_bank
from generator.write import write_dataset


def write(settings: dict[str, Any], folder: Path) -> None:
    """Stories in those paraphrases alone that the settings would hold out for the tests."""
    config = Config.from_json(settings)
    path = folder.resolve() / "bank.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    save_bank(split_bank(load_bank(config), config).test, path)
    write_dataset(replace(config, bank=str(path), hold_out=("clauses",)), folder)


def get_config():
    return grid_config(
        "figure6",
        Grid(
            heads=("train k", "k", "model"),
            trainings=tuple(training(train) for train in RELEASES),
            models=MODELS_2019,
            laptop={"gat": (5, 40), "bilstm_attention": (2, 25)},
            claims=claims.FIGURE_6,
            write=write,
        ),
    )
