"""Laws of the tables of relations, and their models by brute force."""

import json
import re
import unicodedata
import zipfile
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from generator.errors import InputError
from generator.relations.algebra import Algebra, parse_algebra
from generator.relations.algebras import NAMES, algebra_of, algebra_with, find_algebra
from generator.relations.kinship import KINSHIP
from generator.tables.rows import parse_rows

CELLS = 6


def intervals(points: int = 6) -> np.ndarray:
    """Relations of all pairs of intervals with these end points; three intervals need 6."""
    names = find_algebra("interval").relations
    every = [(a, b) for a in range(points) for b in range(a + 1, points)]

    def relation(x: tuple[int, int], y: tuple[int, int]) -> str:
        (a, b), (c, d) = x, y
        if b < c or d < a:
            return "<" if b < c else ">"
        if b == c or d == a:
            return "m" if b == c else "mi"
        if a == c:
            return "=" if b == d else "s" if b < d else "si"
        if b == d:
            return "f" if a > c else "fi"
        if a > c and b < d:
            return "d"
        if a < c and b > d:
            return "di"
        return "o" if a < c else "oi"

    return np.array([[names.index(relation(x, y)) for y in every] for x in every])


def regions() -> np.ndarray:
    """RCC-8 relations of all regions of the line that consist of some of six closed unit cells."""
    names = find_algebra("rcc8").relations
    cells = np.array([[0, *bits, 0] for bits in product((0, 1), repeat=CELLS)][1:])
    touching = cells.copy()  # cells with a point in common with the region
    touching[:, 1:] |= cells[:, :-1]
    touching[:, :-1] |= cells[:, 1:]
    connected, overlap = cells @ touching.T > 0, cells @ cells.T > 0
    part, inner = cells @ (1 - cells).T == 0, touching @ (1 - cells).T == 0
    kinds = {
        "EQ": part & part.T, "NTPP": inner, "NTPPI": inner.T, "TPP": part, "TPPI": part.T,
        "PO": overlap, "EC": connected, "DC": ~connected,
    }  # fmt: skip
    found = np.full(part.shape, -1)
    for name, holds in kinds.items():
        found[(found < 0) & holds] = names.index(name)
    return found


@pytest.mark.parametrize(("name", "model"), [("interval", intervals), ("rcc8", regions)])
def test_composition_is_that_of_all_triples_of_a_model(name: str, model) -> None:
    algebra, relation = find_algebra(name), model()
    holds = (relation == np.arange(len(algebra.relations))[:, None, None]).astype(np.float32)
    for first, second in np.ndindex(len(holds), len(holds)):
        possible = np.unique(relation[holds[first] @ holds[second] > 0])
        heads = np.flatnonzero(algebra.composition[first, second])
        expected = heads if len(heads) else np.arange(len(holds))  # nothing follows
        assert possible.tolist() == expected.tolist(), (first, second)
    assert (algebra.inverse[relation, relation.T]).all()


@pytest.mark.parametrize(("name", "identity"), [("interval", "="), ("rcc8", "EQ")])
def test_laws(name: str, identity: str) -> None:
    """The identity, and the inverse of a composition."""
    algebra = find_algebra(name)
    inverse, heads = algebra.inverse.argmax(axis=1), algebra.composition
    same, every = algebra.relations.index(identity), np.eye(len(algebra.relations), dtype=bool)
    assert (algebra.inverse.sum(axis=1) == 1).all()
    assert (inverse[inverse] == range(len(heads))).all()
    assert (heads[same] == every).all() and (heads[:, same] == every).all()
    assert (heads == heads[inverse][:, inverse].swapaxes(0, 1)[..., inverse]).all()


def test_kinship_view() -> None:
    """A relation has the predicate of its view, and a rule the gender of its second fact."""
    view = KINSHIP.view
    assert view is not None and len(KINSHIP.rules) == 64 and KINSHIP.has_rules_only
    predicate, gender = np.array(view.predicate), np.array(view.property)
    assert (view.relation[predicate, gender] == np.arange(22)).all()
    _, second, head = KINSHIP.rules.T
    assert (gender[head] == gender[second]).all()
    rules = {tuple(rule) for rule in view.algebra.rules.tolist()}
    assert {tuple(rule) for rule in predicate[KINSHIP.rules].tolist()} == rules and len(rules) == 16
    # Y is the r of X: X is the inverse of Y, a man or a woman.
    for relation, inverse in (("aunt", {"nephew", "niece"}), ("son", {"father", "mother"})):
        found = KINSHIP.inverses[KINSHIP.index[relation]]
        assert {KINSHIP.relations[r] for r in found} == inverse


def test_names_and_definitions(tmp_path: Path) -> None:
    words = {"NTPPI": "rcc8", "oi": "interval", "=": "interval", "Mother in law": "kinship"}
    assert {word: algebra_with(word).name for word in words} == words
    assert algebra_with("x") is KINSHIP
    for name in NAMES:
        algebra = find_algebra(name)
        (tmp_path / "algebra.json").write_text(json.dumps(algebra.to_json()))
        read = find_algebra(str(tmp_path / "algebra.json"))
        assert read == algebra and (read is KINSHIP or read.view is None)


ORDER = {
    "name": "order",
    "relations": "< = >",
    "inverse": {"<": ">", "=": "=", ">": "<"},
    "composition": {
        "<": {"<": "<", "=": "<"}, "=": {"<": "<", "=": "=", ">": ">"}, ">": {">": ">", "=": ">"},
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": None}, "name None, expected text"),
        ({"relations": "< < ="}, "expected 2 to 64 different names"),
        ({"relations": ["<", "a b"]}, "expected names of relations"),
        ({"relations": "< a'"}, "expected names of relations"),
        ({"inverse": {"<": ">", ">": "<"}}, 'inverse: none of "="'),
        ({"inverse": {"<": "=", "=": "=", ">": "<"}}, "not the other way round"),
        ({"composition": {"<": {"~": "<"}}}, 'unknown relation "~"'),
        ({"composition": {"<": {"=": "<"}, "=": {">": "<"}}}, "contradicts that of their inverses"),
    ],
)
def test_wrong_definitions_are_one_line(change: dict, problem: str) -> None:
    assert parse_algebra(ORDER, "order").rules.shape == (7, 3)
    with pytest.raises(InputError) as error:
        parse_algebra(ORDER | change, "order.json")
    assert problem in str(error.value) and str(error.value).startswith("order.json: ")
    with pytest.raises(InputError, match='no "name"'):
        parse_algebra([], "order.json")


def test_a_number_is_the_name_of_a_relation_or_refused() -> None:
    facts = "[('a', '2', 'b'), ('b', '3', 'c')]"
    numbers = parse_algebra(
        json.loads(json.dumps(ORDER).translate(str.maketrans("<=>", "123"))), "numbers"
    )

    def target(text: str, algebra: Algebra, fact: str = facts) -> int:
        rows = [{"facts": fact, "query": "a, c", "target": text}]
        return next(parse_rows("x.csv", rows, algebra=algebra)).target

    assert [target(text, numbers) for text in "123"] == [0, 1, 2]
    for text in ("0", "7", "1.0"):
        with pytest.raises(InputError, match=f'unknown label "{text}", expected 1, 2, 3$'):
            target(text, numbers)
    ordered = facts.replace("2", "<").replace("3", "=")
    order = parse_algebra(ORDER, "order")
    for text in ("0", "1", "2.0"):
        with pytest.raises(InputError, match=f'unknown label "{text}", expected <, =, >$'):
            target(text, order, ordered)
    # A spreadsheet writes "+1" as 1: no index of "-1".
    names = "+1 0.0 -1"
    inverse = dict.fromkeys(names.split(), names)
    signed = parse_algebra(
        {"name": "x", "relations": names, "composition": {}, "inverse": inverse}, "x"
    )
    fact = "[('a', '+1', 'b'), ('b', '0.0', 'c')]"
    assert target("+1", signed, fact) == 0
    with pytest.raises(InputError, match='unknown label "1", expected '):
        target("1", signed, fact)


def test_names_that_differ_in_capitals_are_read_exactly() -> None:
    """Intervals are also written with "d" for during and "D" for its inverse."""
    names = ["d", "D", "is-in", "IS_IN", "Meets"]
    inverse = dict.fromkeys(names, names)
    algebra = parse_algebra(
        {"name": "x", "relations": names, "inverse": inverse, "composition": {}}, "x"
    )
    assert [algebra.find(name) for name in names] == [0, 1, 2, 3, 4]
    assert algebra.find("Is in") is None and algebra.find("meets") == 4


def test_accents_of_relations_are_composed() -> None:
    """Cells of data are, as is the text of predictions: both ways to write them are one name."""
    one, two = unicodedata.normalize("NFC", "près"), unicodedata.normalize("NFD", "près")
    assert one != two
    expected = parse_algebra(json.loads(json.dumps(ORDER).replace("=", "près")), "order")
    definition = json.dumps(ORDER, ensure_ascii=False).replace("=", two)
    algebra = parse_algebra(json.loads(definition), "order")
    assert algebra == expected and algebra.find(two) == algebra.find(one) == 1
    facts = f"[('a', '{two}', 'b'), ('b', '<', 'c')]"
    rows = [{"facts": facts, "query": "a,c", "target": two}]
    assert next(parse_rows("x.csv", rows, algebra=algebra)).relations == (1, 0)


@pytest.mark.parametrize("kind", ["file", "folder", "zip"])
def test_a_repeated_key_is_refused(kind: str, tmp_path: Path) -> None:
    """Otherwise the last of two rows of a table would replace the first."""
    twice = re.sub('"<": ', '"<": {}, \\g<0>', json.dumps(ORDER))
    assert json.loads(twice) == ORDER
    path = tmp_path / "algebra.json"
    path.write_text(twice)
    if kind == "zip":
        with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
            archive.write(path, "algebra.json")
    with pytest.raises(InputError, match=r'json.*"<" twice in an object'):
        if kind == "file":
            find_algebra(str(path))
        else:
            algebra_of(tmp_path / "data.zip" if kind == "zip" else tmp_path)


@pytest.mark.parametrize("tables", [ORDER, KINSHIP.to_json() | {"composition": {}}])
def test_other_tables_are_not_named_kinship(tables: dict, tmp_path: Path) -> None:
    """Kinship has rules of its own for text, which other relations of this name would get."""
    path, archived = tmp_path / "algebra.json", tmp_path / "data.zip"
    path.write_text(json.dumps(tables | {"name": "kinship"}))
    with zipfile.ZipFile(archived, "w") as archive:
        archive.write(path, "data/algebra.json")
    for read, place in ((find_algebra, str(path)), (algebra_of, tmp_path), (algebra_of, archived)):
        with pytest.raises(InputError, match=r'algebra\.json: name "kinship": the package has'):
            read(place)
