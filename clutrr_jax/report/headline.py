"""The result of an experiment in words."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from clutrr_jax.experiment import NO_K
from clutrr_jax.report.accuracy import Results, Row, format_fraction

FAILS = 0.5  # accuracy below which a model has fallen apart
MOST = 4  # models that are named one by one

Test = tuple[Any, Any]  # panel and x


def headline(results: Results) -> str:
    """Returns which model is best, and where models first have an accuracy below FAILS.

    On a single curve the best model is that of the largest x, else that of the highest mean over
    all tests. Accuracies on a part of the stories of a test do not count, nor ensembles and
    variants of models, nor baselines if there is a model. Empty at the smoke scale, whose
    accuracies show nothing, and if the series are no models.
    """
    panel, x, series = results["columns"]
    if results["scale"] == "smoke" or series != "model":
        return ""
    rows = [((row[panel], row[x]), row) for row in results["rows"]
            if row["kind"] in ("model", "baseline") and not row["average"]
            and row["accuracy"] is not None]  # fmt: skip
    stories: defaultdict[Test, int] = defaultdict(int)
    for test, row in rows:
        stories[test] = max(stories[test], row["count"])
    found: dict[str, dict[str, dict[Test, Row]]] = {"model": {}, "baseline": {}}
    for test, row in rows:
        if row["count"] == stories[test]:
            found[row["kind"]].setdefault(row["name"], {})[test] = row
    tests = list(stories)
    if not any(isinstance(value, str) for _, value in tests):
        tests.sort(key=lambda test: test[1])
    if models := found["model"]:
        return " ".join(filter(None, [_best(models, tests, x), _fallen(models, tests, x)]))
    best = found["baseline"] and _best(found["baseline"], tests, x)
    return f"No model is measured. Baselines: {best}" if best else ""


def _name(test: Test, tests: Sequence[Test], x: str) -> str:
    """Returns `k = 3`, the panel, or both: `k = 3 (clean)`."""
    panel, value = test
    name = value if isinstance(value, str) else f"{x} = {value}"
    if len({panel for panel, _ in tests}) == 1:
        return name
    return str(panel) if name == NO_K else f"{name} ({panel})"


def _best(models: Mapping[str, Mapping[Test, Row]], tests: Sequence[Test], x: str) -> str:
    """Names the best model on the deciding tests, and the next one."""
    is_curve = len({panel for panel, _ in tests}) == 1 and not isinstance(tests[0][1], str)
    deciding = tests[-1:] if is_curve else tests
    means = {
        name: sum(rows[test]["accuracy"] for test in deciding) / len(deciding)
        for name, rows in models.items()
        if all(test in rows for test in deciding)
    }
    ranked: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(means, key=lambda name: -means[name]):
        ranked[format_fraction(means[name])].append(name)
    if not ranked:
        return ""
    (value, first), *others = ranked.items()
    if len(deciding) > 1:
        value += f" on average over {len(deciding)} tests"
    elif len(tests) > 1:
        value += f" at {_name(deciding[0], tests, x)}"
    if not others:
        equal = f"{_and(first)} are equally good" if len(first) > 1 else first[0]
        return f"{equal}: {value}."
    next_value, following = others[0]
    text = f"{_and(first)} {'is' if len(first) == 1 else 'are'} best: {value}, ahead of "
    text += f"{_and(following)} ({next_value})"
    if len(deciding) == 1:
        low = min(models[name][deciding[0]]["low"] for name in first)
        if any(models[name][deciding[0]]["high"] >= low for name in following):
            text += "; their 95 % intervals overlap"
    return f"{text}."


def _fallen(models: Mapping[str, Mapping[Test, Row]], tests: Sequence[Test], x: str) -> str:
    """Names the models with an accuracy below FAILS, each with the first of these tests."""
    fails, first = format_fraction(FAILS), {}
    for name, rows in models.items():
        below = [t for t in tests if t in rows and round(rows[t]["accuracy"], 2) < FAILS]
        if below:
            first[name] = below[0]
    if not first:
        return f"{'It does not fall' if len(models) == 1 else 'No model falls'} below {fails}."
    if len(first) > MOST:
        return f"{len(first)} of {len(models)} models fall below {fails}."
    places: defaultdict[Test, list[str]] = defaultdict(list)
    for name in sorted(first, key=lambda name: tests.index(first[name])):
        places[first[name]].append(name)
    where = (f"{_and(names)} at {_name(test, tests, x)}" for test, names in places.items())
    return f"Below {fails} first: {', '.join(where)}."


def _and(names: Sequence[str]) -> str:
    """Joins names by commas and "and"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
