"""Scaling with data: accuracy at k = 4, 7, 10 after training on 1,000, 10,000 and 100,000 stories.

Trains on generated stories of k = 2, 3. The tests are the same for all sizes and hold out
paraphrases, which only text models see. Not in any paper.

    python launch.py --config=experiments/scaling.py --workdir=runs/scaling --config.scale=laptop

Hardware: the laptop scale, one replica, takes 15 minutes on one core without the BiLSTM. The number
of steps depends on the number of stories only where one epoch has more steps than `train.steps`.

Result: more stories improve reading; the prover needs no more than 1,000, and the GAT gains little
at k = 7 and 10.
"""

from clutrr_jax.experiment import MODEL, Experiment, Training, experiment_config

SIZES = (1_000, 10_000, 100_000)  # train stories
TESTS = (4, 7, 10)  # k
MODELS = ("prover", "gat", "reader_prover", "bilstm_attention")


def training(size: int) -> Training:
    """Returns the training on `size` stories, half of them of k = 2."""
    return Training(
        name=str(size),
        settings={
            "generate.train": "1.2,1.3",
            "generate.train_rows": size // 2,
            "generate.test": ",".join(f"1.{k}" for k in TESTS),
            "generate.test_rows": 200,
        },
        tests_by_cell={(k, size, MODEL): (f"1.{k}",) for k in TESTS},
    )


def get_config():
    return experiment_config(
        "scaling",
        Experiment(
            column_names=("k", "train stories", "model"),
            trainings=tuple(map(training, SIZES)),
            models=MODELS,
            laptop=dict.fromkeys(MODELS, 1),
        ),
    )
