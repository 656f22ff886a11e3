"""The result of an experiment in words, from results by hand."""

from typing import Any

import pytest

from clutrr_jax.report.headline import headline
from tests.report.rows import row

KS = (2, 3, 4, 10)
# Accuracies by k.
PROVER, GAT, MAC = (1.0, 1.0, 0.99, 0.96), (1.0, 0.9, 0.6, 0.4), (0.9, 0.45, 0.44, 0.3)
RULES = {"given rules": (1.0,) * 4, "majority label": (0.3,) * 4}


def results(accuracies: Any, keys: Any = tuple(("clean", k) for k in KS)) -> dict[str, Any]:
    """Accuracies of each series at the keys (panel, x), all of 20 stories and ±.05."""
    columns = ("noise", "k", "model")
    rows = [
        row(columns, (*key, name), name, accuracy=value, count=20,
            **({} if value is None else {"low": value - 0.05, "high": value + 0.05}))
        for name, values in accuracies.items()
        for key, value in zip(keys, values, strict=True)
    ]  # fmt: skip
    return {"columns": columns, "scale": "", "rows": rows}


KEYS = [("clean", 2), ("clean", 3), ("supporting", 3)]
PANELS = [("clean", "no k"), ("supporting", "no k"), ("task 9", "no k")]
LATE = {"a": (0.5, 0.5, 0.5, 0.6), "b": (1.0, 1.0, 1.0, 0.59)}


@pytest.mark.parametrize(
    ("accuracies", "keys", "expected"),
    [
        ({"mac": MAC, "prover": PROVER, "gat": GAT, **RULES}, None,
         ["prover is best: .96 at k = 10, ahead of gat (.40)", "mac at k = 3, gat at k = 10"]),
        (LATE, None, ["a is best: .60", "b (.59); their 95 % intervals overlap", "No model falls"]),
        ({"prover": PROVER, "gat": GAT, "rn": GAT, "mac": (0.4, 0.6, 0.4, 0.6)}, None,
         ["ahead of mac (.60)", "mac at k = 2, gat and rn at k = 10"]),
        ({"prover": PROVER} | {f"m{i}": (0.4,) * 4 for i in range(5)}, None,
         ["m0, m1, m2, m3 and m4 (.40)", "5 of 6 models"]),
        ({"a": PROVER, "b": (1.0, 1.0, 1.0, 0.9612)}, None, ["b and a are equally good: .96"]),
        ({"a": (1.0, 1.0, 1.0, 0.496)}, None, ["a: .50 at k = 10.", "It does not fall"]),
        ({"gat": GAT, **RULES}, None, ["gat: .40 at k = 10.", "gat at k = 10"]),
        ({"gat": (0.9, 0.3, 0.2), "rn": (0.8, 0.6, 0.4)}, PANELS,
         ["rn is best: .60 on average over 3 tests", "(.47)", "gat at supporting, rn at task 9"]),
        ({"gat": (0.9, 0.8, 0.4), "rn": (0.8, 0.6, 0.7)}, KEYS,
         ["gat and rn are equally good: .70", "gat at k = 3 (supporting)"]),
        ({"gat": (None,) * 4, **RULES}, None, ["No model is measured", "given rules is best"]),
    ],
)  # fmt: skip
def test_the_result_by_hand(accuracies, keys, expected) -> None:
    """Also in another order of the rows, but for equally good models."""
    found = results(accuracies, keys) if keys else results(accuracies)
    for part in expected:
        assert part in headline(found)
    if "equally" not in expected[0] and "m0" not in expected[0]:
        found["rows"].reverse()
        assert expected[0] in headline(found)


def test_parts_of_the_stories_ensembles_and_variants_do_not_count() -> None:
    """A user's model whose name looks like a variant does."""
    better = (1.0,) * 4
    names = ("gat (ensemble of 3)", "reader_prover: given rules", "part")
    models = {"reader_prover": PROVER, "gpt": GAT, "gpt: cot": GAT}
    found = results(models | dict.fromkeys(names, better))
    for one in found["rows"]:
        if one["name"] == "part":
            one["count"] = 3
        if one["name"] == "reader_prover: given rules":
            one["kind"] = "variant"
    assert "reader_prover is best: .96 at k = 10, ahead of gpt and gpt: cot (.40)" in headline(
        found
    )
    found["rows"] = [one for one in found["rows"] if one["name"] != "gpt" or one["k"] < 10]
    assert "ahead of gpt: cot (.40)" in headline(found)


@pytest.mark.parametrize(
    "changes", [{"scale": "smoke"}, {"rows": []}, {"columns": ("model", "k", "noise")}]
)
def test_without_comparable_models_there_is_no_sentence(changes) -> None:
    assert headline(results({"gat": GAT}) | changes) == ""
