"""What more stories give: accuracy at k = 4, 7, 10 after training on 1,000 to 1,000,000 stories.

Freshly generated stories of k = 2, 3 to train on, the same tests for all sizes. The text models
meet the tests' paraphrases for the first time there, the others read the facts. What comes out is
where more data helps reading, and where it does not help reasoning. No paper has such a figure.

    python launch.py --config=experiments/scaling.py --workdir=runs/scaling --config.scale=laptop

A replica is a run of its own, on stories of its own seed. The laptop scale has one, and trains for
as many epochs as that of the paper: the fewer, the more stories there are.
"""

from experiments.grid.definition import MODEL, Grid, Training, grid_config

SIZES = (1_000, 10_000, 100_000, 1_000_000)
TESTS = (4, 7, 10)
# Of each size.
EPOCHS = {
    "prover": (20, 6, 2, 1),
    "gat": (120, 40, 12, 3),
    "reader_prover": (90, 30, 10, 1),
    "bilstm_attention": (24, 8, 3, 1),
}


def training(size: int) -> Training:
    """Train on so many stories, half of them of k = 2."""
    return Training(
        name=str(size),
        settings={
            "generate.train": "1.2,1.3",
            "generate.train_rows": size // 2,
            "generate.test": ",".join(f"1.{k}" for k in TESTS),
            "generate.test_rows": 200,
        },
        reads={(k, size, MODEL): (f"1.{k}",) for k in TESTS},
        epochs={model: epochs[SIZES.index(size)] for model, epochs in EPOCHS.items()},
    )


def get_config():
    return grid_config(
        "scaling",
        Grid(
            heads=("k", "train stories", "model"),
            trainings=tuple(training(size) for size in SIZES),
            models=tuple(EPOCHS),
            laptop=dict.fromkeys(EPOCHS, (1, 1)),
            claims={},
        ),
    )
