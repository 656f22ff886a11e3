"""The tables of an experiment, from results by hand."""

from dataclasses import asdict
from typing import Any

import pytest

from clutrr_jax.experiment import runs
from clutrr_jax.report.accuracy import accuracy_table, with_interval
from clutrr_jax.report.tables import (
    escape_markdown,
    html_table,
    markdown_table,
    results_markdown,
    settings_table,
)
from clutrr_jax.settings import default_settings
from tests.report import rows

KS = (2, 3)
AMBIGUOUS = {2: 0, 3: 3}
# Model -> accuracies and standard errors of the selected and of the last epoch, by k.
ACCURACIES = {
    "gat": ([(0.9, 0.02), (0.7, 0.1)], [(0.8, 0.03), (0.6, 0.2)]),
    "mac": ([(0.5, None), (0.4, None)], [(0.5, None), (0.3, None)]),
    "ncrl": ([(0.6, 0.01), (0.2, 0.02)], [(0.6, 0.01), (0.2, 0.02)]),
    "given rules": ([(1.0, None), (0.92, None)],) * 2,
    "induced rules": ([(0.97, None), (0.91, None)],) * 2,
    "majority label": ([(0.15, None), (0.1, None)],) * 2,
}
REPLICAS = {"gat": 3, "ncrl": 2}


GIVEN = {"gat": "nothing", "mac": "words for relations, rules", "ncrl": "nothing"}
COLUMNS = ("noise", "k", "model")


def row(model: str, k: int, selected: tuple, last: tuple) -> dict[str, Any]:
    names = ("accuracy", "stderr", "accuracy_last", "stderr_last")
    given = {"given": GIVEN[model]} if model in GIVEN else {}
    return rows.row(
        COLUMNS, ("clean", k, model), model, **given,
        **dict(zip(names, (*selected, *last), strict=True)), count=20 if k == 2 else 30,
        low=0.1, high=1.0, replicas=REPLICAS.get(model, 1), ambiguous=AMBIGUOUS[k],
    )  # fmt: skip


def summary(model: str, dev_accuracy: float) -> dict[str, Any]:
    """With the settings that `experiments/single.py` gives the model."""
    (run,) = runs(default_settings("test", model))
    settings = run.config[model].to_dict() | {"train": asdict(run.config.train)}
    return {
        "parameters": 12_345, "epochs": 7, "replicas": REPLICAS.get(model, 1), "seconds": 61.4,
        "diverged": [], "dev_accuracy": dev_accuracy,
        "stories_per_second": 9_000, "settings": settings,
    }  # fmt: skip


@pytest.fixture
def results() -> dict[str, Any]:
    return {
        "name": "test",
        "scale": "",
        "headline": "",
        "columns": COLUMNS,
        "data": [{"name": "stories", "train_rows": 100, "test_rows": 50}],
        "devices": ["2 cores"],
        "wall_seconds": 1.0,
        "models": {name: summary(name, 0.55) for name in ("gat", "mac", "ncrl")},
        "runs": [{"name": "gat", "state": "finished"}],
        "claims": {},
        "note": "",
        "extraction": {},
        "rows": [
            row(model, *of_test)
            for model, epochs in ACCURACIES.items()
            for of_test in zip(KS, *epochs, strict=True)
        ],
    }


def test_the_last_epoch_has_a_line_if_it_differs(results) -> None:
    assert accuracy_table(results).texts() == [
        ["model", "given", "k=2", "k=3"],
        ["gat (3 replicas)", "nothing", ".90 ±.02", ".70 ±.10"],
        ["  last epoch", "", ".80 ±.03", ".60 ±.20"],
        ["mac (1 replica)", "words for relations, rules", ".50", ".40"],
        ["  last epoch", "", ".50", ".30"],
        ["ncrl (2 replicas)", "nothing", ".60 ±.01", ".20 ±.02"],
        ["given rules", "rules", "1.00", ".92"],
        ["induced rules", "nothing", ".97", ".91"],
        ["majority label", "labels of the test", ".15", ".10"],
        ["stories", "", "20", "30"],
        ["several answers", "", "0", "3"],
    ]


def test_reports_show_intervals_and_say_so(results) -> None:
    """Averages have no interval."""
    line = "| gat (3 replicas) | nothing | .90 (.10-1.00) | .70 (.10-1.00) |"
    text = results_markdown(results)
    assert line in text and "in parentheses its 95 % interval" in text
    average = {"accuracy": 0.5, "stderr": None, "low": None, "high": None}
    assert [with_interval(average), with_interval({"accuracy": None, "low": None})] == [".50", ""]


def test_dev_accuracy_is_a_mean_over_replicas(results) -> None:
    lines = results_markdown(results).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| model | parameters"))
    assert lines[start + 2] == "| gat | 12,345 | 3 | 7 | 0.550 | 61 | 9,000 |"


def test_settings_that_are_not_the_usual_ones_are_listed(results) -> None:
    """GAT with other settings of its own and of training; the defaults of MAC; a model that is not
    in the registry any more."""
    gat, mac, other = (results["models"][model]["settings"] for model in ("gat", "mac", "ncrl"))
    gat |= {"steps": 1, "dropout": 0.25}
    gat["train"] |= {"epochs": 7, "learning_rate": 1e-5, "ema_decay": 0.5, "replicas": 3}
    mac["train"]["checkpoint_minutes"] = 9.0
    results["models"]["gone"] = {"settings": {"hidden": 3, "train": other["train"]}}
    table = settings_table(results)
    assert table == [
        ["model", "epochs", "steps", "patience", "batch", "learning rate", "other settings"],
        ["gat", "7", "", "", "100", "1e-05", "dropout 0.25, steps 1, train.ema_decay 0.5"],
        ["mac", "", "20000", "3000", "20", "0.001", ""],
        ["ncrl", "", "3000", "1000", "100", "0.0005", ""],
        ["gone", "", "3000", "1000", "100", "0.0005", "hidden 3"],
    ]
    del results["models"]["gone"]
    line = "| gat | 7 |  |  | 100 | 1e-05 | dropout 0.25, steps 1, train.ema_decay 0.5 |"
    assert line in results_markdown(results)


def test_different_noise_types_are_rows_of_their_own(results) -> None:
    for found in results["rows"]:
        found["noise"] = {2: "clean", 3: "disconnected"}[found["k"]]
    table = accuracy_table(results).texts()
    assert table[0] == ["noise", "model", "given", "k=2", "k=3"]
    assert table[1] == ["clean", "gat (3 replicas)", "nothing", ".90 ±.02", ""]
    assert ["disconnected", "gat (3 replicas)", "nothing", "", ".70 ±.10"] in table


def test_intervals_and_answers_that_are_not_mapped_have_lines(results) -> None:
    for found in results["rows"]:
        found["unmapped"] = 7 if found["model"] == "gat" else 0
    lines = accuracy_table(results, intervals=True).texts()
    assert lines[3:5] == [
        ["  95 % interval (this training)", "", ".10-1.00", ".10-1.00"],
        ["  not mapped", "", "7", "7"],
    ]  # fmt: skip
    assert sum("95 % interval" in line[0] for line in lines) == 3  # not of the baselines


def test_another_metric_has_a_table_of_its_own(results) -> None:
    """Next to the accuracies, for the series that have it."""
    assert "Macro accuracy" not in results_markdown(results)
    for found in results["rows"]:
        if found["model"] == "gat":
            values = {"mean": 0.25, "stderr": 0.05, "low": 0.1, "high": 0.4, "replicas": [0.2, 0.3]}
            found["metrics"]["macro accuracy"] = values
    text = results_markdown(results)
    assert "Macro accuracy: Accuracy on the test stories of each label, averaged" in text
    assert "| gat (3 replicas) | nothing | .25 (.10-.40) | .25 (.10-.40) |" in text
    assert ".90 (.10-1.00)" in text


MARKDOWN = {
    "a|b": r"a\|b", "50%": "50%", "$x$": r"\$x\$", "*a* *": r"\*a\* *", "+.07*": "+.07*",
    "_a_ gat_b": r"\_a\_ gat_b", "`c`": r"\`c\`", r"\|": r"\\\|", "~~d~~": r"\~\~d\~\~",
    "[a](b) [c]": r"[a\](b) [c]", "<b> <.001": r"\<b> <.001", "&lt; & x": r"\&lt; & x",
    "#1 {y} ^ é": "#1 {y} ^ é", "two\nlines": "two lines", "__init__": r"\_\_init\_\_",
    "![x](y)": r"![x\](y)",
}  # fmt: skip


@pytest.mark.parametrize("text", MARKDOWN)
def test_markdown_shows_a_text_as_it_is(text: str) -> None:
    assert escape_markdown(text) == MARKDOWN[text]


def test_names_are_no_markup(results) -> None:
    """In a table of Markdown, whose bars are columns, in titles, and in notebooks."""
    for found in results["rows"]:
        found["model"] = {"gat": "$a|*b*"}.get(found["model"], found["model"])
    results["data"][0]["name"] = "_data_"
    text = results_markdown(results)
    assert r"| \$a\|\*b\* (3 replicas) | nothing | .90 (.10-1.00) | .70 (.10-1.00) |" in text
    assert text.startswith(r"# test on \_data\_")
    for name, shown in (("# x", r"\# x"), ("- x", r"\- x"), ("> x", r"\> x"), ("12) x", r"12\) x")):
        assert results_markdown(results | {"headline": name}).splitlines()[2] == shown
    assert markdown_table([["a|b", "c"]]) == [r"| a\|b | c |", "|---|---|"]
    assert html_table([["$a$ <b>", "c"]]).startswith("<table class='tex2jax_ignore mathjax_ignore'")
