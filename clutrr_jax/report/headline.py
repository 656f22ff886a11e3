"""The result of an experiment in words."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from clutrr_jax.experiment import NO_K
from clutrr_jax.report.tables import Results, Row, format_fraction, with_most_stories

FAILS = 0.5  # accuracy below which a model has fallen apart
MOST = 4  # models, or tests, that are named one by one

Test = tuple[Any, Any]  # panel and x


def headline(results: Results) -> str:
    """Returns which model is best, and on which tests models have an accuracy below FAILS.

    On a single curve the best model is that of the largest x, else that of the highest mean over
    all tests. Accuracies on a part of the stories of a test do not count, nor ensembles and
    variants of models, nor baselines if there is a model. Empty at the smoke scale, whose
    accuracies show nothing, and if the series are no models.
    """
    panel, x, series = results["columns"]
    measured: defaultdict[Test, list[Row]] = defaultdict(list)
    for row in results["rows"]:
        counts = row["kind"] in ("model", "baseline") and not row["average"]
        if counts and row["accuracy"] is not None:
            measured[row[panel], row[x]].append(row)
    if results["scale"] == "smoke" or series != "model" or not measured:
        return ""
    models: defaultdict[str, dict[Test, Row]] = defaultdict(dict)
    baselines: defaultdict[str, dict[Test, Row]] = defaultdict(dict)
    for test, rows in measured.items():
        stories = with_most_stories(rows)["count"]
        for row in rows:
            if row["count"] == stories:
                (models if row["kind"] == "model" else baselines)[row["name"]][test] = row
    tests = _Tests(list(measured), x)
    if models:
        return " ".join(filter(None, [_best(models, tests), _fallen(models, tests)]))
    return f"No model is measured. Baselines: {_best(baselines, tests)}" if baselines else ""


class _Tests:
    """The tests of a table, and how sentences name them."""

    def __init__(self, tests: Sequence[Test], x: str):
        self.x = x
        panels, xs = (list(dict.fromkeys(test[part] for test in tests)) for part in range(2))
        self.panels = len(panels) > 1
        self.ordered = not any(isinstance(value, str) for value in xs)
        self.is_curve = len(xs) > 1 and not self.panels and self.ordered
        self.all = list(tests)
        if self.ordered:
            self.all.sort(key=lambda test: (panels.index(test[0]), test[1]))
        self.deciding = self.all[-1:] if self.is_curve else self.all

    def name(self, test: Test) -> str:
        """Returns `k = 3`, the panel, or both: `k = 3 (clean)`."""
        panel, x = test
        x = x if isinstance(x, str) else f"{self.x} = {x}"
        if self.panels and x != NO_K:
            return f"{x} ({panel})"
        return str(panel) if self.panels else x

    def where(self, some: Sequence[Test], all_tests: Sequence[Test]) -> str:
        """Returns where some of the tests of a model are, with a blank before."""
        if len(self.all) == 1:
            return ""
        if len(some) == len(all_tests):
            return f" at every {self.x}" if self.is_curve else " on all tests"
        of_panel = [test for test in all_tests if test[0] == some[0][0]]
        if self.ordered and len(some) > 1 and list(some) == of_panel[-len(some) :]:
            return f" from {self.name(some[0])}"
        if len(some) > MOST:
            return f" on {len(some)} of {len(all_tests)} tests"
        return (" at " if self.is_curve else " on ") + ", ".join(map(self.name, some))


def _best(models: Mapping[str, Mapping[Test, Row]], tests: _Tests) -> str:
    """Which model is best on the deciding tests, and which one is next."""
    means = {
        name: sum(rows[test]["accuracy"] for test in tests.deciding) / len(tests.deciding)
        for name, rows in models.items()
        if all(test in rows for test in tests.deciding)
    }
    ranked: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(means, key=lambda name: -means[name]):
        ranked[format_fraction(means[name])].append(name)
    if not ranked:
        return ""
    (value, first), *others = ranked.items()
    if tests.is_curve:
        value += f" at {tests.name(tests.deciding[0])}"
    elif len(tests.deciding) > 1:
        value += f" on average over {len(tests.deciding)} tests"
    if len(means) == 1:
        return f"{first[0]}: {value}."
    if not others:
        return f"{_and(first)} are equally good: {value}."
    next_value, following = others[0]
    text = f"{_and(first)} {'is' if len(first) == 1 else 'are'} best: {value}, ahead of "
    text += f"{_and(following)} ({next_value})"
    if len(tests.deciding) == 1:
        (test,) = tests.deciding
        low = min(models[name][test]["low"] for name in first)
        if any(models[name][test]["high"] >= low for name in following):
            text += "; their 95 % intervals overlap"
    return f"{text}."


def _fallen(models: Mapping[str, Mapping[Test, Row]], tests: _Tests) -> str:
    """Which models have an accuracy below FAILS, and on which tests."""
    own = {name: [test for test in tests.all if test in rows] for name, rows in models.items()}
    below = {
        name: [t for t in own[name] if round(rows[t]["accuracy"], 2) < FAILS]
        for name, rows in models.items()
    }
    fallen = sorted(filter(below.get, below), key=lambda name: tests.all.index(below[name][0]))
    one, fails = len(models) == 1, format_fraction(FAILS)
    if not fallen:
        return f"{'It does not fall' if one else 'No model falls'} below {fails}."
    if len(fallen) > MOST:
        first = f", the first at {tests.name(below[fallen[0]][0])}" if tests.is_curve else ""
        return f"{len(fallen)} of {len(models)} models fall below {fails}{first}."
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name in fallen:
        places[tests.where(below[name], own[name])].append(name)
    (where, names), *others = places.items()
    verb = "fall" if len(names) > 1 else "falls"
    text = f"{'It' if one else _and(names)} {verb} below {fails}{where}"
    return "; ".join([text, *(f"{_and(names)}{where}" for where, names in others)]) + "."


def _and(names: Sequence[str]) -> str:
    """Joins names by commas and "and"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
