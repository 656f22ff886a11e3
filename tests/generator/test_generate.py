import csv

import numpy as np

from generator.config import Config, parse_tasks
from generator.generate import generate
from generator.kinship import RELATIONS
from generator.write import write_dataset

CONFIG = Config(
    train=parse_tasks("1.2,5.4"),
    test=parse_tasks("7.3"),
    train_rows=1100,
    test_rows=9,
    language="synthetic",
)


def test_the_same_stories_as_in_files(tmp_path):
    write_dataset(CONFIG, tmp_path)
    for name, split in (("1.2,5.4_train.csv", "train"), ("7.3_test.csv", "test")):
        with open(tmp_path / name, newline="") as file:
            rows = list(csv.DictReader(file))
        data = generate(CONFIG, split)
        assert len(data) == len(rows)
        assert [RELATIONS[t] for t in data.target] == [r["target"] for r in rows]
        pairs = [[tuple(e) for e in edges[edges[:, 0] >= 0].tolist()] for edges in data.edges]
        assert list(map(str, pairs)) == [r["story_edges"] for r in rows]
        types = [[RELATIONS[r] for r in row[row >= 0]] for row in data.relations]
        assert list(map(str, types)) == [r["edge_types"] for r in rows]
        names = [[n[1:-1] for n in row] for row in data.names]
        assert [r["genders"].count(":") for r in rows] == [len(n) for n in names]
        assert [str((n[x], n[y])) for n, (x, y) in zip(names, data.query, strict=True)] == [
            r["query"] for r in rows
        ]
        assert [f"task_{t}.{k}" for t, k in zip(data.task, data.clause_length, strict=True)] == [
            r["task_name"] for r in rows
        ]
        assert data.stories[:9] == [r["story"] for r in rows][:9]


def test_parts_of_the_endless_sequence():
    whole = generate(CONFIG, rows=2000)
    part = generate(CONFIG, rows=50, first=1000)
    for a, b in ((whole.edges, part.edges), (whole.genders, part.genders)):
        assert (a.reshape(2, 2000, *a.shape[1:])[:, 1000:1050].reshape(b.shape) == b).all()
    assert whole.stories[1000:1050] == part.stories[:50]
    assert generate(CONFIG, rows=0).edges.shape[0] == 0


def test_without_text():
    data, told = generate(CONFIG, text=False), generate(CONFIG)
    assert data.stories == data.names == []
    assert np.array_equal(data.edges, told.edges) and np.array_equal(data.target, told.target)
