"""Number of training stories: accuracy after training on 300 to 10,000 of them.

Trains on generated clean stories of k = 2, 3. The tests are the same for all sizes: k = 4, 7, 10,
and k = 7 with two kinds of noise that training did not contain. They hold out paraphrases, which
only text models see. Not in any paper.

    python launch.py --config=experiments/scaling.py --workdir=runs/scaling

Each of the three replicas has stories of its own. The number of steps depends on the number of
stories only where one epoch has more steps than `train.steps`.

Hardware: the laptop scale takes about two hours on one core.
"""

from clutrr_jax.experiment import MODEL, Experiment, Training, experiment_config

SIZES = (300, 1_000, 3_000, 10_000)  # train stories
TESTS = {"k = 4": "1.4", "k = 7": "1.7", "k = 10": "1.10",
         "k = 7, supporting": "2.7", "k = 7, disconnected": "4.7"}  # fmt: skip
MODELS = ("prover", "epignn", "edge_lstm", "gat", "transformer_facts", "reader_prover")


def training(size: int) -> Training:
    """Returns the training on `size` stories, half of them of k = 2."""
    return Training(
        name=str(size),
        settings={
            "generate.train": "1.2,1.3",
            "generate.train_rows": size // 2,
            "generate.test": ",".join(TESTS.values()),
            "generate.test_rows": 200,
        },
        tests_by_cell={(label, size, MODEL): (test,) for label, test in TESTS.items()},
    )


def get_config():
    return experiment_config(
        "scaling",
        Experiment(
            column_names=("test", "train stories", "model"),
            trainings=tuple(map(training, SIZES)),
            models=MODELS,
            laptop=dict.fromkeys(MODELS, 3),
        ),
    )
