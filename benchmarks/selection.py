"""Rules for choosing the epoch that is tested, compared on several data sets.

    python -m benchmarks selection --models gat,prover --json selection.json \\
        --data path/to/data_089907f8.zip path/to/data_db9b8f04.zip
    python -m benchmarks selection --models gat,prover --json selection.json \\
        --generate train_rows=500 train_rows=2500,train=2.2+2.3,test=2.4+2.10

Every epoch of each model is tested; then each rule chooses an epoch from the metrics on the dev
stories. The table shows the accuracy of that epoch on the tests, the mean over test sets and
replicas. Data sets that are in the JSON file already are not trained again.
"""

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import parser, positive_int
from clutrr_jax.data.prepare import Prepared, prepare
from clutrr_jax.data.records import tasks
from clutrr_jax.evaluation.frozen_states import with_states
from clutrr_jax.models import MODELS
from clutrr_jax.run import model_names
from clutrr_jax.settings import default_settings, train_settings
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.state import has_stopped
from clutrr_jax.training.trainer import Trainer
from generator.config import Config
from generator.errors import InputError
from generator.files import read_json, write_text
from generator.write import write_dataset

# The metrics of one replica, arrays over epochs -> the index of the chosen epoch.
Rule = Callable[[dict[str, np.ndarray]], int]


def stopped(history: dict[str, np.ndarray], patience: int) -> tuple[int, int]:
    """Index of the epoch with the lowest dev loss, and of the last epoch, of a training that stops
    once the dev loss has not improved for this many steps."""
    best, step = 0, history["step"]
    for epoch, loss in enumerate(history["dev_loss"]):
        if loss <= history["dev_loss"][best]:
            best = epoch
        if has_stopped(step[best], step[epoch], patience):
            break
    return best, epoch


def latest_best(values: np.ndarray) -> int:
    """Index of the largest value, the latest of ties."""
    return len(values) - 1 - int(np.argmax(values[::-1]))


RULES: dict[str, Rule] = {
    "best dev accuracy": lambda history: latest_best(history["dev_accuracy"]),
    "lowest dev loss": lambda history: latest_best(-history["dev_loss"]),
    "last, no patience": lambda history: len(history["dev_loss"]) - 1,
    "patience 500": lambda history: stopped(history, 500)[0],
    "patience 1000": lambda history: stopped(history, 1000)[0],
    "patience 1000, last": lambda history: stopped(history, 1000)[1],
    "best epoch on the tests": lambda history: int(np.argmax(history["test"])),  # not a rule
}


def main(argv: list[str]) -> int:
    """Prints the table."""
    options = parser("selection", __doc__)
    options.add_argument("--models", type=model_names, required=True, metavar="A,B,...",
                         help="names")  # fmt: skip
    options.add_argument("--data", nargs="*", default=[], help="CLUTRR data sets")
    options.add_argument(
        "--generate", nargs="*", default=[], help="generator settings of further data sets"
    )
    options.add_argument("--steps", type=positive_int, default=3000, help="optimizer steps [3000]")
    options.add_argument("--replicas", type=positive_int, default=2, help="replicas [2]")
    options.add_argument("--json", type=Path, required=True, help="all histories")
    given = options.parse_args(argv)
    found = read_json(given.json) if given.json.exists() else {}
    for model, source in product(given.models, [*given.data, *given.generate]):
        is_generated = source in given.generate
        key = f"{model}, {source}, {given.steps} steps, {given.replicas} replicas"
        if key not in found:
            with tempfile.TemporaryDirectory() as folder:
                data = read(source, is_generated, Path(folder))
            found[key] = train(model, data, given.steps, given.replicas)
            write_text(given.json, json.dumps(found))
        print(line(key, found[key]), flush=True)
    print("\n" + "\n".join(worst(found)))
    return 0


def read(source: str, is_generated: bool, folder: Path) -> Prepared:
    """Reads a data set, or generates one from settings NAME=VALUE,..., where + separates tasks."""
    if not is_generated:
        return prepare(source)
    values = {}
    for part in source.split(","):
        name, separator, value = part.partition("=")
        if not separator:
            raise InputError(f'--generate "{source}": "{part}", expected NAME=VALUE')
        values[name] = value.replace("+", ",")
    write_dataset(Config.from_json(Config().to_json() | values), folder)
    return prepare(folder)


def train(model: str, data: Prepared, steps: int, count: int) -> list[dict[str, Any]]:
    """Trains and tests every epoch. Returns the history of each replica."""
    config = default_settings("selection", model)
    if MODELS[model].kind == "states":
        data = with_states(data, config[model])
    settings = train_settings(config, model)
    settings.steps, settings.patience = steps, 0
    trainer = Trainer(MODELS[model], config[model], settings, data, Replicas(count))
    state = trainer.init()
    histories: list[dict[str, Any]] = [defaultdict(list) for _ in range(count)]
    for epoch in range(1, trainer.epochs + 1):
        state, metrics = trainer.epoch(state, epoch)
        predicted, _ = trainer.predict(state.ema_params, state.buffers, data.test_stories)
        correct = predicted == data.test.target
        for replica, history in enumerate(histories):
            values = {
                "step": int(state.step[replica]),
                "dev_accuracy": float(metrics.dev_accuracy[replica]),
                "dev_loss": float(metrics.dev_loss[replica]),
            } | {task: float(correct[replica, rows].mean()) for task, rows in tasks(data.test)}
            for name, value in values.items():
                history[name].append(value)
    return histories


def chosen(history: dict[str, Any]) -> dict[str, tuple[int, float]]:
    """Returns for each rule the epoch, from 1, and the mean accuracy over the tests."""
    arrays = {name: np.array(values) for name, values in history.items()}
    tests = [values for name, values in arrays.items() if name[0].isdigit()]
    arrays["test"] = np.mean(tests, axis=0)
    epochs = {name: rule(arrays) for name, rule in RULES.items()}
    return {name: (epoch + 1, float(arrays["test"][epoch])) for name, epoch in epochs.items()}


def line(key: str, histories: list[dict[str, Any]]) -> str:
    """Formats one data set: accuracy and epochs of each rule."""
    by_replica = [chosen(history) for history in histories]
    cells = []
    for rule in RULES:
        epochs = "/".join(str(found[rule][0]) for found in by_replica)
        cells.append(f"{rule} {np.mean([found[rule][1] for found in by_replica]):.3f} ({epochs})")
    return f"{key}: " + ", ".join(cells)


def worst(found: dict[str, Any]) -> list[str]:
    """Returns for each rule its mean and largest loss against the best epoch, over all lines."""
    *rules, best = RULES
    accuracies = [chosen(history) for histories in found.values() for history in histories]
    lines = []
    for rule in rules:
        losses = [accuracy[best][1] - accuracy[rule][1] for accuracy in accuracies]
        lines.append(
            f"{rule}: below the best epoch by {np.mean(losses):.3f} on average, "
            f"{max(losses):.3f} at most"
        )
    return lines
