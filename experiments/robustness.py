"""Robustness: few training stories, longer clauses and noise facts that training did not contain.

Trains on 500, 2,500 or 10,000 clean stories each of k = 2, 3 and tests every kind of noise at every
k. The page of the grid shows one heat map per model. Not in any paper.

    python launch.py --config=experiments/robustness.py --workdir=runs/robustness \\
        --config.scale=laptop

Hardware: the laptop scale, one replica of the graph models, takes about 40 minutes on one core.

Expected result: the prover loses little, from the smallest size on; the other models lose more the
longer the clauses are. Noise facts mislead the LSTM over edges most, at every length.
"""

from clutrr_jax.experiment import MODEL, Experiment, Training, experiment_config

ROWS = (500, 2_500, 10_000)  # train stories of each k
NOISES = {1: "clean", 2: "supporting", 3: "irrelevant", 4: "disconnected", 5: "all three"}
LENGTHS = range(2, 11)
GRAPH_MODELS = ("prover", "ncrl", "epignn", "gat", "edge_lstm")
TEXT_MODELS = ("reader_prover", "bilstm_attention")


def training(rows: int) -> Training:
    """Returns the training on `rows` clean stories each of k = 2, 3."""
    return Training(
        name=str(rows),
        settings={
            "generate.train": "1.2,1.3",
            "generate.train_rows": rows,
            "generate.test": ",".join(f"{t}.{k}" for t in NOISES for k in LENGTHS),
        },
        tests_by_cell={
            (f"{2 * rows:,}, {name}", k, MODEL): (f"{noise}.{k}",)
            for noise, name in NOISES.items()
            for k in LENGTHS
        },
    )


def get_config():
    return experiment_config(
        "robustness",
        Experiment(
            column_names=("training stories, noise in the test", "k", "model"),
            trainings=tuple(map(training, ROWS)),
            models=(*GRAPH_MODELS, *TEXT_MODELS),
            laptop=dict.fromkeys(GRAPH_MODELS, 1),
        ),
    )
