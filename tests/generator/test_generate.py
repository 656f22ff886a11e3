import csv
from dataclasses import replace

from generator.config import Config, parse_tasks
from generator.generate import generate
from generator.write import write_dataset

CONFIG = Config(
    train=parse_tasks("1.2,5.4"),
    test=parse_tasks("7.3,1.2"),
    train_rows=1100,
    test_rows=9,
    language="synthetic",
)


def test_rows_equal_the_rows_of_files(tmp_path):
    write_dataset(CONFIG, tmp_path)

    def read(name):
        with open(tmp_path / name, newline="") as file:
            return list(csv.DictReader(file))

    assert list(generate(CONFIG)) == read("1.2,5.4_train.csv")
    assert list(generate(CONFIG, "test")) == read("7.3_test.csv") + read("1.2_test.csv")


def test_fewer_rows_are_the_first_rows_of_each_task():
    rows = list(generate(CONFIG))
    fewer = list(generate(replace(CONFIG, train_rows=(1030, 20))))
    expected = rows[:1030] + rows[1100:1120]
    assert [row | {"": ""} for row in fewer] == [row | {"": ""} for row in expected]
    assert list(generate(replace(CONFIG, train_rows=0))) == []
