"""Tests that tell a reading error from a reasoning error: clauses and words, each seen or new.

The clauses are those of the train stories or held out. The words are paraphrases, seen in training
or held out, or plain templates of two languages that are never trained on. The tests on the same
clauses tell the same stories. All clauses of k = 2 are trained on, and all longer than those of the
train stories are new.
"""

from dataclasses import replace
from pathlib import Path

from generator.errors import InputError
from generator.paraphrases.load import load_bank
from generator.stories.config import Config, Task
from generator.stories.hold_out import split_bank
from generator.stories.render import Renderer, pieces
from generator.write import write_dataset, write_files

# (clauses, words) -> T of the tests T.K, and their k after training on k = 2, 3
KINDS = {
    ("seen", "seen"): (10, (2, 3)),
    ("seen", "new"): (9, (2, 3)),
    ("seen", "synthetic"): (13, (2, 3)),
    ("seen", "plain"): (14, (2, 3)),
    ("new", "seen"): (8, range(3, 11)),
    ("new", "new"): (1, range(3, 11)),
    ("new", "synthetic"): (11, range(3, 11)),
    ("new", "plain"): (12, range(3, 11)),
}


def write_diagnosis(config: Config, out: Path, workers: int = 1, form: str = "csv") -> list[Path]:
    """Writes a data set and the tests of KINDS of the k that it trains or tests on.

    Arguments and result are those of `write_dataset`. All tests have the same number of stories.
    """
    if any(config.rows("dev", task) for task in config.tasks("dev")):
        raise InputError("dev_rows: expected 0, because the tests have the stories of dev files")
    files = write_dataset(config, out, workers, form)
    banks = split_bank(load_bank(config), config)
    words = {"seen": banks.train, "new": banks.test}
    for language in ("synthetic", "plain"):
        words[language] = load_bank(replace(config, language=language, bank=""))
    rows, tested = config.rows("test", config.test[0]), {t.k for t in config.train + config.test}
    config = replace(config, test_rows=rows, dev_rows=rows)
    for (clauses, name), (task, lengths) in KINDS.items():
        split = "dev" if clauses == "seen" else "test"  # dev stories have the train clauses
        parts = {
            out / f"{task}.{k}_test.{form}": pieces(config, split, [Task(1, k)])
            for k in lengths
            if k in tested
        }
        render = Renderer(config, replace(banks, train=words[name], test=words[name]), form, task)
        files += write_files(parts, render, workers)
    return list(dict.fromkeys(files))
