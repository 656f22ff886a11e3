"""A search for a learning rate that ends trainings which fall behind, as Optuna prunes trials.

    python examples/prune.py
    python examples/prune.py --data data_089907f8.zip

Trains an LSTM over edges once for each learning rate, by default on generated stories of k = 2, 3,
in about a minute on two cores, and prints the dev loss of each training and the accuracy of the
best one. Expected result: 1e-4 ends after a few epochs. The tests of the data choose nothing.

`Trial` stands in for `optuna.trial.Trial`, whose methods it has. With Optuna, replace `main` by

    study = optuna.create_study(pruner=optuna.pruners.MedianPruner())
    study.optimize(lambda trial: objective(trial, data), n_trials=20)
"""

import argparse
from typing import Any

import numpy as np

import clutrr_jax

LEARNING_RATES = (1e-3, 3e-3, 1e-4)
EPOCHS, WARMUP = 12, 3


class Trial:
    """A training, which is pruned if its value is above the median of the earlier trainings at the
    same step."""

    def __init__(self, learning_rate: float, earlier: list["Trial"]):
        self.learning_rate, self.earlier = learning_rate, earlier
        self.values: dict[int, float] = {}  # by step

    def suggest_float(self, name: str, low: float, high: float, log: bool = False) -> float:
        return self.learning_rate

    def report(self, value: float, step: int) -> None:
        self.values[step] = value

    def should_prune(self) -> bool:
        step = max(self.values)
        others = [trial.values[step] for trial in self.earlier if step in trial.values]
        return step >= WARMUP and bool(others) and self.values[step] > np.median(others)


def objective(trial: Any, data: clutrr_jax.Dataset) -> float:
    """Returns the dev loss of a training, the mean over its replicas."""
    losses: list[float] = []

    def callback(line: dict[str, Any]) -> bool:
        losses.append(float(np.mean(line["dev_loss"])))
        trial.report(losses[-1], line["epoch"])
        return trial.should_prune()  # True: the training is finished, and its model is tested

    learning_rate = trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True)
    settings = {"train.learning_rate": learning_rate}
    run = clutrr_jax.train(
        "edge_lstm", data, replicas=2, epochs=EPOCHS, settings=settings, callback=callback
    )
    trial.run = run  # Optuna: raise optuna.TrialPruned() here if the callback has returned True
    return losses[-1]


def main(arguments: list[str] | None = None) -> list[Trial]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", help="a data set, by default generated stories")
    options = parser.parse_args(arguments)
    if options.data:
        data = clutrr_jax.load(options.data)
    else:
        data = clutrr_jax.generate(train_rows=2000, test_rows=50, language="synthetic")
    trials: list[Trial] = []
    for learning_rate in LEARNING_RATES:
        trials.append(Trial(learning_rate, trials[:]))
        loss = objective(trials[-1], data)
        epochs = len(trials[-1].values)
        print(f"learning rate {learning_rate}: dev loss {loss:.3f} after {epochs} epochs")
    best = min(trials, key=lambda trial: trial.values[max(trial.values)])
    print(best.run)
    return trials


if __name__ == "__main__":
    main()
