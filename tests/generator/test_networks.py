"""Graphs of facts with one possible answer, and the files of `python -m generator --algebra`."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from generator.__main__ import main
from generator.networks.sampler import Networks, Sampler, cyclic, max_elements
from generator.relations.algebra import Algebra, parse_algebra
from generator.relations.algebras import find_algebra
from generator.relations.kinship import KINSHIP
from generator.relations.path_consistency import possible_relations
from generator.stories.config import Task
from generator.tables.readers import table_rows
from generator.tables.rows import Row, parse_rows
from tests.generator.relations.test_algebras import intervals, regions

# Steps around a circle of four places; nothing follows from two steps by 1 or by 3.
CIRCLE = {
    "name": "circle",
    "relations": "r0 r1 r2 r3",
    "inverse": {"r0": "r0", "r1": "r3", "r2": "r2", "r3": "r1"},
    "composition": {
        f"r{a}": {f"r{b}": f"r{(a + b) % 4}" for b in range(4) if (a, b) not in ((1, 1), (3, 3))}
        for a in range(4)
    },
}


def graphs(
    algebra: Algebra, cell: str, count: int = 104, distractors: int = 0
) -> tuple[Networks, np.ndarray]:
    """Graphs of a cell, and their labels."""
    task = Task(*map(int, cell.split(".")))
    sampler = Sampler(algebra, [task])
    labels = cyclic(sampler.labels(task.noise), 0, count)
    return sampler.graphs(labels, task, distractors, np.random.default_rng(7)), labels


def possible(networks: Networks, algebra: Algebra) -> np.ndarray:
    query = np.stack([0 * networks.elements, networks.elements - 1], axis=1)
    return possible_relations(networks.edges, networks.relations, query, algebra)


def facts(networks: Networks, i: int) -> list[tuple[int, int, int]]:
    stated = networks.relations[i] >= 0
    edges, relations = networks.edges[i, stated].tolist(), networks.relations[i, stated].tolist()
    return [(x, y, r) for (x, y), r in zip(edges, relations, strict=True)]


@pytest.mark.parametrize("cell", ["1.2", "3.2", "2.4", "8.3", "1.5", "2.6", "1.7", "3.8", "1.10"])
@pytest.mark.parametrize("name", ["rcc8", "interval"])
def test_graphs_have_their_paths_and_one_answer(name: str, cell: str) -> None:
    algebra, (b, k) = find_algebra(name), map(int, cell.split("."))
    networks, labels = graphs(algebra, cell)
    answers = possible(networks, algebra)
    assert (answers.sum(axis=1) == 1).all() and (answers.argmax(axis=1) == labels).all()
    assert networks.elements.max() <= max_elements(Task(b, k), 0)
    for i in range(len(labels)):
        stated, last = facts(networks, i), int(networks.elements[i]) - 1
        assert {e for x, y, _ in stated for e in (x, y)} == set(range(last + 1))
        assert all(x < y for x, y, _ in stated)
        # Each way through has k facts, and b parts meet at the query pair alone.
        distance, part = {0: 0}, list(range(last + 1))
        for x, y, _ in sorted(stated):
            assert distance.setdefault(y, distance[x] + 1) == distance[x] + 1
        assert distance[last] == k
        for x, y, _ in stated:
            if x > 0 and y < last:
                part = [part[x] if p == part[y] else p for p in part]
        assert len(set(part[1:-1])) == b
        if k <= 4:
            assert len(stated) == b * k


@pytest.mark.parametrize(
    ("cell", "low", "high", "mean"),
    [("1.5", 8, 14, 11.1), ("1.6", 9, 15, 12.0), ("1.7", 11, 20, 15.5), ("1.8", 12, 21, 16.4),
     ("2.5", 14, 26, 20.1), ("2.7", 20, 38, 29.1)],
)  # fmt: skip
def test_sizes_are_those_of_the_published_files(
    cell: str, low: int, high: int, mean: float
) -> None:
    elements = graphs(find_algebra("rcc8"), cell, 1600)[0].elements
    assert (elements.min(), elements.max()) == (low, high)
    assert elements.mean() == pytest.approx(mean, abs=0.25)


@pytest.mark.parametrize("cell", ["1.2", "3.2", "2.3"])
def test_answers_are_those_of_all_models(cell: str) -> None:
    """Intervals with room for all end points; regions of a line, which lack some models."""
    b, k = map(int, cell.split("."))
    for name, relation in (("interval", intervals(22)), ("rcc8", regions())):
        algebra = find_algebra(name)
        holds = (relation == np.arange(len(algebra.relations))[:, None, None]).astype(np.float32)
        networks, labels = graphs(algebra, cell, 26)
        models = 0
        for stated, label in zip(networks.relations.reshape(-1, b, k), labels, strict=True):
            found = np.ones(relation.shape, bool)
            for path in stated:
                ends = holds[path[0]]
                for r in path[1:]:
                    ends = (ends @ holds[r] > 0).astype(np.float32)
                found &= ends > 0
            assert set(relation[found].tolist()) <= {label}
            models += found.any()
        assert models == 26 if name == "interval" else models > 13


def test_each_path_leaves_out_something_and_pairs_are_uniform() -> None:
    """Of two pairs, all combinations with one common relation are equally frequent."""
    algebra = find_algebra("rcc8")
    label, count = algebra.index["PO"], 20_000
    networks = Sampler(algebra, [Task(2, 2)]).graphs(
        np.full(count, label), Task(2, 2), 0, np.random.default_rng(0)
    )
    found = Counter(map(tuple, networks.relations.tolist()))
    heads = algebra.composition | ~algebra.composition.any(axis=-1, keepdims=True)
    informative = np.argwhere(~heads.all(axis=-1)).tolist()
    expected = {
        (*p, *q)
        for p in informative
        for q in informative
        if np.flatnonzero(heads[*p] & heads[*q]).tolist() == [label]
    }
    assert set(found) == expected
    frequency = np.array([*found.values()]) * len(expected) / count
    assert np.square(frequency - 1).mean() == pytest.approx(len(expected) / count, rel=0.5)


def test_networks_of_one_call_are_independent() -> None:
    """Whatever their sizes, and whether another one contradicts itself."""
    algebra = find_algebra("interval")
    networks, _ = graphs(algebra, "1.7", 300)
    edges, relations = networks.edges.copy(), networks.relations.copy()
    relations[::7, -20:] = algebra.index["<"]
    edges[::7, -20:] = [[0, 1], [1, 0]] * 10
    changed = possible(Networks(edges, relations, networks.elements), algebra)
    alone = possible(
        Networks(*(part[:7] for part in (edges, relations, networks.elements))), algebra
    )
    assert (changed[:7] == alone).all() and not changed[::7].any()
    others = np.arange(300) % 7 > 0
    assert (changed[others] == possible(networks, algebra)[others]).all()


def test_a_contradiction_apart_from_the_query_pair() -> None:
    algebra = find_algebra("rcc8")
    edges, query = np.array([[[0, 1], [2, 3], [3, 4], [4, 2]]] * 2), np.array([[0, 1]] * 2)
    words = [("DC", "NTPP", "NTPP", "NTPPI"), ("DC", "NTPP", "NTPP", "NTPP")]
    relations = np.array([[algebra.index[word] for word in row] for row in words])
    found = possible_relations(edges, relations, query, algebra)
    assert found.sum(axis=1).tolist() == [1, 0] and found[0, algebra.index["DC"]]


@pytest.mark.parametrize("name", ["rcc8", "interval"])
@pytest.mark.parametrize("cell", ["2.3", "1.5"])
def test_distractors_are_dead_ends(name: str, cell: str) -> None:
    algebra, k = find_algebra(name), int(cell[2:])
    networks, labels = graphs(algebra, cell, distractors=4)
    plain, _ = graphs(algebra, cell)
    answers = possible(networks, algebra)
    assert (answers.sum(axis=1) == 1).all() and (answers.argmax(axis=1) == labels).all()
    starts: Counter[bool] = Counter()
    for i in range(len(labels)):
        stated, n, last = facts(networks, i), len(facts(plain, i)), networks.elements[i] - 1
        assert [r for *_, r in stated[:n]] == [r for *_, r in facts(plain, i)]
        core = {e for x, y, _ in stated[:n] for e in (x, y)}
        assert core == {*range(plain.elements[i] - 1), last}
        assert 4 <= len(stated) - n <= 4 * k and all(x < y for x, y, _ in stated)
        degree = Counter(e for x, y, _ in stated[n:] for e in (x, y) if e not in core)
        assert set(degree.values()) <= {1, 2} and [*degree.values()].count(1) == 4
        assert len(degree) == len(stated) - n and core | set(degree) == set(range(last + 1))
        starts[any(last in (x, y) for x, y, _ in stated[n:])] += 1
    assert min(starts.values()) > 5  # some start at the last element, some do not


def rows_of(path: Path, algebra: Algebra | None = None) -> list[Row]:
    return list(parse_rows(str(path), table_rows(path), algebra))


def generate(out: Path, *options: str, algebra: str = "rcc8") -> dict[str, bytes]:
    small = ("--train", "", "--test", "2.3", "--test-rows", "3", "--train-rows", "3")
    assert main(["--algebra", algebra, "--out", str(out), *small, *options]) == 0
    return {path.name: path.read_bytes() for path in out.glob("*.csv")}


def test_files(tmp_path: Path, capsys) -> None:
    """Columns, names and balance; the bytes depend on the seed and the cell alone."""
    files = generate(tmp_path / "a", "--train", "1.2,2.3", "--test", "2.3,1.5")
    train, test = "train_rcc8_k_3_b_2.csv", "test_rcc8_k_3_b_2.csv"
    assert set(files) == {"train_rcc8_k_2_b_1.csv", train, test, "test_rcc8_k_5_b_1.csv"}
    assert capsys.readouterr().out.split() == [
        str(tmp_path / "a" / name)
        for name in ("train_rcc8_k_2_b_1.csv", train, test, "test_rcc8_k_5_b_1.csv")
    ]
    header, first, *_ = files[test].decode().splitlines()
    assert header == ",edges,edge_labels,query_edge,query_label"
    assert first.startswith('0,"[(0, 1), (1, 2), (2, 5), (0, 3), (3, 4), (4, 5)]","[\'')
    assert first.endswith('\']","(0, 5)",DC')
    for name in files:
        rows = rows_of(tmp_path / "a" / name)
        assert [row.target for row in rows] == [*range(8)] * 3
        assert {(row.split, row.noise, row.k) for row in rows} == {
            (name.split("_")[0], int(name[-5]), int(name[-9]))
        }
    assert files[train] != files[test]
    assert generate(tmp_path / "b")[test] == files[test]
    assert generate(tmp_path / "c", "--workers", "2")[test] == files[test]
    assert generate(tmp_path / "d", "--seed", "1")[test] != files[test]
    longer = generate(tmp_path / "e", "--distractors", "2")[test]
    assert len(longer) > len(files[test])
    assert find_algebra(str(tmp_path / "a" / "algebra.json")) == find_algebra("rcc8")
    assert main(["--algebra", "rcc8", "--out", str(tmp_path / "a")]) == 2
    assert "holds data of other settings" in capsys.readouterr().err


def test_an_algebra_of_the_user(tmp_path: Path) -> None:
    """On a circle, the answer is the sum of the steps of each path."""
    (tmp_path / "circle.json").write_text(json.dumps(CIRCLE | {"name": "my test: 4 steps"}))
    cells = ("--test", "1.2,3.4,2.7", "--distractors", "1")
    files = generate(tmp_path / "data", *cells, algebra=str(tmp_path / "circle.json"))
    assert set(files) == {f"test_algebra_{c}.csv" for c in ("k_2_b_1", "k_4_b_3", "k_7_b_2")}
    algebra = find_algebra(str(tmp_path / "data" / "algebra.json"))
    assert algebra.name == "my test: 4 steps" and algebra.has_rules_only
    for name in files:
        for row in rows_of(tmp_path / "data" / name, algebra):
            place = {0: 0}
            for (x, y), r in sorted(zip(row.edges, row.relations, strict=True)):
                if x in place:
                    assert place.setdefault(y, (place[x] + r) % 4) == (place[x] + r) % 4
            assert place[row.query[1]] == row.target


def test_audit(tmp_path: Path, capsys) -> None:
    """Of generated files, and after each kind of fault."""
    generate(tmp_path, "--train", "2.3", "--test", "2.3,1.5")
    capsys.readouterr()
    assert main(["audit", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "label, test  2.3  1.5\nDC             3    3\n" in out
    assert out.endswith("72 rows, 0 wrong labels\n")
    path = tmp_path / "test_rcc8_k_3_b_2.csv"
    header, *rows = path.read_text().splitlines()
    first = "[(0, 1), (1, 2), (2, 5), (0, 3), (3, 4), (4, 5)]"
    rows[0] = f"""0,"{first}","['EQ', 'EQ', 'DC', 'EQ', 'EQ', 'DC']","(0, 5)",EC"""
    rows[1] = f"""1,"{first}","['EQ', 'EQ', 'EC', 'EQ', 'EQ', 'DC']","(0, 5)",EC"""
    rows[2] = f"""2,"{first}","['EQ', 'EQ', 'TPP', 'PO', 'EQ', 'TPP']","(0, 5)",TPP"""
    rows[3] = f"""3,"{first}","['PO', 'EQ', 'TPP', 'PO', 'EQ', 'TPP']","(0, 5)",TPP"""
    rows[4] = rows[5]
    rows[6] = (tmp_path / "train_rcc8_k_3_b_2.csv").read_text().splitlines()[1]
    path.write_text("\n".join([header, *rows]) + "\n")
    assert main(["audit", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    line = next(line for line in out.splitlines() if line.startswith(path.name))
    # PO or TPP or NTPP is possible in row 4, one of three.
    assert line.split()[1:] == ["24", "21", "1", "2", "1", "1", "0"]
    assert f"{path.name}: WRONG: row 1: (0, 5) is said to be EC; DC is possible" in out
    assert f"{path.name}: WRONG: row 2: (0, 5) is said to be EC; the facts contradict" in out
    assert out.endswith("72 rows, 2 wrong labels\n")


UNIFORM = {"name": "u", "relations": "a b", "inverse": {"a": "a", "b": "b"}}


@pytest.mark.parametrize(
    ("composition", "cell", "problem"),
    [
        ({"a": {"a": "a b"}}, "2.2", "cell 2.2: u has no relation that 2 paths leave alone"),
        ({"a": {"a": "b"}}, "1.3", "no graphs with the answer b and 1 paths of 3 facts"),
    ],
)
def test_an_algebra_with_too_few_rules(
    tmp_path: Path, capsys, composition: dict, cell: str, problem: str
) -> None:
    path = tmp_path / "u.json"
    path.write_text(json.dumps(UNIFORM | {"composition": composition}))
    command = ["--algebra", str(path), "--out", str(tmp_path / "out"), "--train", ""]
    assert main([*command, "--test", cell]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and problem in message


def test_pairs_that_cannot_grow_are_drawn_again() -> None:
    """a, a leaves b, but only a fact b can become two."""
    algebra = parse_algebra(UNIFORM | {"composition": {"a": {"a": "b"}, "b": {"b": "b"}}}, "u")
    networks, labels = graphs(algebra, "1.3")
    assert set(map(tuple, networks.relations.tolist())) == {(0, 0, 1), (1, 0, 0), (1, 1, 1)}
    assert set(labels.tolist()) == {1}


def test_labels_are_those_that_can_be_reached() -> None:
    algebra = parse_algebra(UNIFORM | {"composition": {"a": {"a": "b"}}}, "u")
    assert Sampler(algebra, [Task(3, 2)]).labels(3).tolist() == [1]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--algebra rcc9", 'algebra "rcc9": expected kinship, rcc8, interval or a JSON file'),
        ("--algebra rcc8 --format parquet", "unrecognized arguments: --format parquet"),
        ("--distractors 1", "unrecognized arguments: --distractors 1"),
        ("--algebra rcc8 --test 0.2", "cell 0.2: B 0: expected 1 or more"),
        ("--algebra rcc8 --test 20.8", "cell 20.8: graphs of up to 382 elements, expected at most"),
        ("--algebra rcc8 --test-rows -1", "--test-rows -1: expected 0 to"),
        ("--algebra rcc8 --train-rows 0 --test-rows 0", "no graphs: expected a cell"),
    ],
)
def test_wrong_options_are_one_line(tmp_path: Path, capsys, options: str, problem: str) -> None:
    assert main([*options.split(), "--out", str(tmp_path / "out")]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and problem in message
    assert not (tmp_path / "out").exists()


def test_kinship_in_a_file_is_refused(tmp_path: Path, capsys) -> None:
    """B of its cells would be read as a kind of noise."""
    (tmp_path / "kin.json").write_text(json.dumps(KINSHIP.to_json()))
    command = ["--algebra", str(tmp_path / "kin.json"), "--out", str(tmp_path / "out")]
    assert main(command) == 2
    assert "relations of kinship, expected --algebra kinship" in capsys.readouterr().err
