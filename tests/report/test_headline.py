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


def test_of_one_curve_the_best_model_is_that_of_the_largest_k() -> None:
    """Also if the rows are in another order, and another model is better on average."""
    found = results({"mac": MAC, "prover": PROVER, "gat": GAT, **RULES})
    expected = (
        "prover is best: .96 at k = 10, ahead of gat (.40). mac falls below .50 from k = 3; gat at "
        "k = 10."
    )
    assert headline(found) == expected
    found["rows"].reverse()
    assert headline(found) == expected
    late = {"a": (0.5, 0.5, 0.5, 0.6), "b": (1.0, 1.0, 1.0, 0.59)}
    assert headline(results(late)) == (
        "a is best: .60 at k = 10, ahead of b (.59); their 95 % intervals overlap. No model falls "
        "below .50."
    )


def test_models_that_fall_at_the_same_k_are_named_together() -> None:
    accuracies = {"prover": PROVER, "gat": GAT, "rn": GAT, "mac": (0.4, 0.6, 0.4, 0.6)}
    found = results({**accuracies, "x": (0.1,) * 4})
    assert headline(found).partition(". ")[2] == (
        "mac falls below .50 at k = 2, k = 4; x at every k; gat and rn at k = 10."
    )
    many = results({"prover": PROVER} | {f"m{i}": MAC for i in range(5)})
    assert headline(many).endswith("5 of 6 models fall below .50, the first at k = 3.")


def test_equal_printed_accuracies_are_equally_good() -> None:
    near = (1.0, 1.0, 1.0, 0.9612)
    assert headline(results({"a": PROVER, "b": near, "c": GAT})).startswith(
        "b and a are best: .96 at k = 10, ahead of c (.40). "
    )
    assert headline(results({"a": PROVER, "b": near})) == (
        "b and a are equally good: .96 at k = 10. No model falls below .50."
    )
    half = (1.0, 1.0, 1.0, 0.496)  # printed .50
    assert headline(results({"a": half})) == "a: .50 at k = 10. It does not fall below .50."


def test_one_model_is_not_called_the_best() -> None:
    assert headline(results({"gat": GAT, **RULES})) == (
        "gat: .40 at k = 10. It falls below .50 at k = 10."
    )
    one_test = results({"gat": (0.4,), **{name: (1.0,) for name in RULES}}, [("unknown", "no k")])
    assert headline(one_test) == "gat: .40. It falls below .50."


def test_tests_without_k_have_the_names_of_their_panels() -> None:
    keys = [("clean", "no k"), ("supporting", "no k"), ("task 9", "no k")]
    found = results({"gat": (0.9, 0.3, 0.2), "rn": (0.8, 0.6, 0.4), "bad": (0.1,) * 3}, keys)
    assert headline(found) == (
        "rn is best: .60 on average over 3 tests, ahead of gat (.47). bad falls below .50 on all "
        "tests; gat on supporting, task 9; rn on task 9."
    )


def test_several_panels_have_a_mean() -> None:
    keys = [("clean", 2), ("clean", 3), ("supporting", 3)]
    assert headline(results({"gat": (0.9, 0.8, 0.4), "rn": (0.8, 0.6, 0.7)}, keys)) == (
        "gat and rn are equally good: .70 on average over 3 tests. gat falls below .50 on k = 3 "
        "(supporting)."
    )
    keys = [("supporting", 3), ("clean", 4), ("clean", 3), ("clean", 2)]
    assert headline(results({"gat": (0.9, 0.2, 0.3, 0.8)}, keys)) == (
        "gat: .55 on average over 4 tests. It falls below .50 from k = 3 (clean)."
    )
    many = [(f"task {i}", 3) for i in range(6)]
    assert headline(results({"gat": (0.4,) * 5 + (0.9,)}, many)) == (
        "gat: .48 on average over 6 tests. It falls below .50 on 5 of 6 tests."
    )


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
    assert headline(found) == (
        "reader_prover is best: .96 at k = 10, ahead of gpt and gpt: cot (.40). gpt and gpt: cot "
        "fall below .50 at k = 10."
    )
    found["rows"] = [one for one in found["rows"] if one["name"] != "gpt" or one["k"] < 10]
    assert "ahead of gpt: cot (.40)" in headline(found)


def test_baselines_are_named_if_there_is_nothing_else() -> None:
    assert headline(results({"gat": (None,) * 4, **RULES})) == (
        "No model is measured. Baselines: given rules is best: 1.00 at k = 10, ahead of majority "
        "label (.30)."
    )


@pytest.mark.parametrize(
    "changes", [{"scale": "smoke"}, {"rows": []}, {"columns": ("model", "k", "noise")}]
)
def test_without_comparable_models_there_is_no_sentence(changes) -> None:
    assert headline(results({"gat": GAT}) | changes) == ""
