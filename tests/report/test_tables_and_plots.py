"""The tables and the curve plot of a run, from results by hand."""

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from clutrr_jax.evaluation.baselines import BASELINES
from clutrr_jax.models.given import given
from clutrr_jax.report.plots import COLORS, plot_curve
from clutrr_jax.report.tables import results_markdown, results_table, settings_table
from clutrr_jax.settings import default_settings, train_settings

TESTS = ("1.2", "1.3")
CEILINGS = {"1.2": 1.0, "1.3": 0.95}
# Model -> accuracies and standard errors of the selected and of the last epoch, by test.
ACCURACIES = {
    "gat": ([(0.9, 0.02), (0.7, 0.1)], [(0.8, 0.03), (0.6, 0.2)]),
    "mac": ([(0.5, None), (0.4, None)], [(0.5, None), (0.3, None)]),
    "ncrl": ([(0.6, 0.01), (0.2, 0.02)], [(0.6, 0.01), (0.2, 0.02)]),
    "given rules": ([(1.0, None), (0.92, None)],) * 2,
    "induced rules": ([(0.97, None), (0.91, None)],) * 2,
    "majority label": ([(0.15, None), (0.1, None)],) * 2,
}
REPLICAS = {"gat": 3, "ncrl": 2}


def row(model: str, task: str, selected: tuple, last: tuple) -> dict[str, Any]:
    names = ("accuracy", "stderr", "accuracy_last", "stderr_last")
    return dict(zip(names, (*selected, *last), strict=True)) | {
        "model": model, "task": task, "count": 20 if task == "1.2" else 30,
        "replicas": REPLICAS.get(model, 1), "ceiling": CEILINGS[task],
    }  # fmt: skip


def summary(model: str, dev_accuracy: list[float]) -> dict[str, Any]:
    """With the settings that `experiments/single.py` gives the model."""
    config = default_settings("test", model)
    settings = config[model].to_dict() | {"train": train_settings(config, model).to_dict()}
    return {
        "parameters": 12_345, "epochs": 7, "replicas": len(dev_accuracy), "seconds": 61.4,
        "diverged_epochs": [0] * len(dev_accuracy), "dev_accuracy": dev_accuracy,
        "stories_per_second": 9_000, "settings": settings,
    }  # fmt: skip


@pytest.fixture
def results() -> dict[str, Any]:
    return {
        "config": {"name": "test"},
        "data": {"name": "stories", "train_rows": 100, "test_rows": 50},
        "device": "2 cores",
        "wall_seconds": 1.0,
        "models": {
            "gat": summary("gat", [0.25, 0.5, 0.9]),
            "mac": summary("mac", [0.125]),
            "ncrl": summary("ncrl", [0.3, 0.4]),
        },
        "added": {},
        "given": {"gat": "nothing", "mac": "words for relations, rules", "ncrl": "nothing"}
        | {name: given({}, name) for name in BASELINES},
        "extraction": {},
        "rows": [
            row(model, *of_test)
            for model, epochs in ACCURACIES.items()
            for of_test in zip(TESTS, *epochs, strict=True)
        ],
    }


def test_the_last_epoch_has_a_line_if_it_differs(results) -> None:
    assert results_table(results) == [
        ["model", "given", "k=2", "k=3"],
        ["gat (3 replicas)", "nothing", ".90 ±.02", ".70 ±.10"],
        ["  last epoch", "nothing", ".80 ±.03", ".60 ±.20"],
        ["mac (1 replica)", "words for relations, rules", ".50", ".40"],
        ["  last epoch", "words for relations, rules", ".50", ".30"],
        ["ncrl (2 replicas)", "nothing", ".60 ±.01", ".20 ±.02"],
        ["given rules", "rules", "1.00", ".92"],
        ["induced rules", "nothing", ".97", ".91"],
        ["majority label", "nothing", ".15", ".10"],
        ["ceiling", "", "1.00", ".95"],
        ["stories", "", "20", "30"],
    ]


def test_dev_accuracy_is_a_mean_over_replicas(results) -> None:
    lines = results_markdown(results).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| model | parameters"))
    assert lines[start + 2 : start + 5] == [
        "| gat | 12,345 | 3 | 7 | 0.550 | 61 | 9,000 |",
        "| mac | 12,345 | 1 | 7 | 0.125 | 61 | 9,000 |",
        "| ncrl | 12,345 | 2 | 7 | 0.350 | 61 | 9,000 |",
    ]


def test_settings_that_are_not_the_usual_ones_are_listed(results) -> None:
    """GAT with other settings of its own and of training; the defaults of MAC; a model that is not
    in the registry any more."""
    gat, mac, other = (results["models"][model]["settings"] for model in ("gat", "mac", "ncrl"))
    gat |= {"heads": 1, "dropout": 0.25}
    gat["train"] |= {"epochs": 7, "learning_rate": 1e-5, "ema_decay": 0.5, "replicas": 3}
    mac["train"]["checkpoint_minutes"] = 9.0
    results["models"]["gone"] = {"settings": {"hidden": 3, "train": other["train"]}}
    table = settings_table(results)
    assert table == [
        ["model", "epochs", "steps", "patience", "batch", "learning rate", "other settings"],
        ["gat", "7", "", "", "100", "1e-05", "dropout 0.25, heads 1, train.ema_decay 0.5"],
        ["mac", "", "20000", "3000", "20", "0.001", ""],
        ["ncrl", "", "3000", "1000", "100", "0.0005", ""],
        ["gone", "", "3000", "1000", "100", "0.0005", "hidden 3"],
    ]
    del results["models"]["gone"]
    line = "| gat | 7 |  |  | 100 | 1e-05 | dropout 0.25, heads 1, train.ema_decay 0.5 |"
    assert line in results_markdown(results)


def lines_of(axes) -> dict[str, list]:
    return {line.get_label(): line.get_xydata().tolist() for line in axes.lines}


def test_a_curve_has_the_accuracies_the_ceiling_and_the_majority_label(results) -> None:
    (axes,) = plot_curve(results).axes
    assert lines_of(axes) == {
        "gat (3 replicas)": [[2, 0.9], [3, 0.7]],
        "mac (1 replica)": [[2, 0.5], [3, 0.4]],
        "ncrl (2 replicas)": [[2, 0.6], [3, 0.2]],
        "ceiling": [[2, 1.0], [3, 0.95]],
        "majority label": [[2, 0.15], [3, 0.1]],
    }
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "3"]


def test_the_band_of_a_curve_is_one_standard_error(results) -> None:
    """On both sides, in the color of the line; of a single replica it has no height."""
    (axes,) = plot_curve(results).axes
    bounds = []
    for band in axes.collections:
        (path,) = band.get_paths()
        corners = path.vertices
        bounds.append([
            [float(pick(corners[corners[:, 0] == k, 1])) for pick in (np.min, np.max)]
            for k in (2, 3)
        ])  # fmt: skip
    expected = [
        [[0.88, 0.92], [0.6, 0.8]],
        [[0.5, 0.5], [0.4, 0.4]],
        [[0.59, 0.61], [0.18, 0.22]],
    ]
    np.testing.assert_allclose(bounds, expected)
    colors = [band.get_facecolor()[0][:3].tolist() for band in axes.collections]
    assert colors == [list(to_rgba(color)[:3]) for color in COLORS[:3]]


def test_different_noise_types_are_columns_of_their_own(results) -> None:
    for found in results["rows"]:
        found["task"] = {"1.2": "1.2", "1.3": "4.3"}[found["task"]]
    assert results_table(results)[0] == ["model", "given", "1.2", "4.3"]
    (axes,) = plot_curve(results).axes
    assert lines_of(axes)["gat (3 replicas)"] == [[0, 0.9], [1, 0.7]]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1.2", "4.3"]
