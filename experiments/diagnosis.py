"""Diagnosis: reading errors and reasoning errors of text models, separately.

Trains on stories of clause length k = 2, 3. There is a test for each k, for clauses that occur in
training and for new (held-out) clauses, and for four kinds of words: seen paraphrases, new
paraphrases, and the synthetic and the plain language, which are never trained on. The same stories
are told in all four. For models that extract a graph from the text, the table also holds
variants that replace one or both parts of the model:

    MODEL                              the extracted graph with the learned rules
    MODEL: given rules                 the extracted graph with the benchmark's 16 rules
    MODEL: stated facts                the stated facts with the learned rules
    MODEL: stated facts, given rules   the stated facts with the 16 rules

The reading error is the difference between the last variant and the second, the reasoning error the
difference between the last and the third.

All clauses of k = 2 are trained on, so that all rules occur in training, and all clauses of k > 3
are new; the other cells of the table are empty. In the folder of a run, the tests are tasks T.K
with T = 1 (all new), 8 (seen paraphrases), 9 (seen clauses), 10 (both seen), and for the synthetic
and the plain language 11 and 12 (new clauses) and 13 and 14 (seen clauses).

    python launch.py --config=experiments/diagnosis.py --workdir=runs/diagnosis \\
        --config.scale=laptop

`--config.models=` accepts any text models. `--config.scale=paper` trains ten replicas of all text
models except those over a frozen BERT.
"""

from pathlib import Path
from typing import Any

from clutrr_jax.experiment import MODEL, Experiment, Training, experiment_config
from clutrr_jax.models import MODELS
from generator.benchmark.seen_and_new import KINDS, write_diagnosis
from generator.stories.config import Config

TRAIN, TESTS = (2, 3), range(2, 11)
LAPTOP_MODELS = (
    "reader_prover", "bilstm_attention", "bilstm_mean", "bilstm_last", "bilstm_2018", "mac", "rn",
    "gnn_2018_mean", "gnn_2018_attention",
)  # fmt: skip


def tests(kind: tuple[str, str], k: int) -> tuple[str, ...]:
    """Returns the tests T.K of a table cell: one, or none."""
    task, lengths = KINDS[kind]
    return (f"{task}.{k}",) if k in lengths else ()


def panel(kind: tuple[str, str]) -> str:
    """Returns the name of a panel of the table and plot."""
    return "{} clauses, {} words".format(*kind)


def write_stories(settings: dict[str, Any], folder: Path) -> None:
    """Writes a data set that holds out clauses and paraphrases, with additional tests on the train
    clauses and in other words. All tests have the same number of stories."""
    write_diagnosis(Config.from_json(settings), folder)


def get_config():
    return experiment_config(
        "diagnosis",
        Experiment(
            column_names=("tests", "k", "model"),
            trainings=(
                Training(
                    name="k23",
                    settings={
                        "generate.train": ",".join(f"1.{k}" for k in TRAIN),
                        "generate.test": ",".join(f"1.{k}" for k in TESTS if k > 2),
                        "generate.hold_out": "clauses,paraphrases",
                    },
                    tests_by_cell={
                        (panel(kind), k, MODEL): tests(kind, k) for kind in KINDS for k in TESTS
                    },
                ),
            ),
            models=tuple(
                n for n, spec in MODELS.items() if spec.kind == "tokens" and not spec.encoder
            ),
            # Without rmc, whose epochs take five minutes, and models over a frozen BERT.
            laptop=dict.fromkeys(LAPTOP_MODELS, 1),
            write_stories=write_stories,
            note="Words: the paraphrases, seen in training or new, or a language that is never "
            "trained on. New: held out in training. All clauses of k = 2 are trained on and "
            "all clauses of k > 3 are new, so the other cells are empty. For models that "
            "extract a graph from the text, given rules: the extracted graph with the 16 rules "
            "of the benchmark; stated facts: the stated facts with the learned rules. The "
            "reading error is the difference between stated facts, given rules and given rules; "
            "the reasoning error that between stated facts, given rules and stated facts.",
        ),
    )
