"""Lines about a whole data set when it is read."""

import json
import re
import shutil
from pathlib import Path

import pytest

from clutrr_jax import load
from generator.__main__ import main
from generator.checks import content
from generator.errors import InputError
from generator.relations.kinship import RELATION_ID, RELATIONS

FACTS = [("Ann", "son", "Bob"), ("Bob", "sister", "Cy")]
ROW = {"facts": FACTS, "query": ("Ann", "Cy"), "target": "daughter"}
BRACKETS = {"story": "[Ann] and her son [Bob] met his sister [Cy]. [Bob] left!", **ROW}
PLAIN = {**BRACKETS, "story": BRACKETS["story"].translate({91: None, 93: None})}


def said(capsys, data, **settings) -> list[str]:
    """The lines that `load` prints."""
    load(data, **settings)
    return capsys.readouterr().err.splitlines()


def write(folder: Path, **tables: list[dict]) -> Path:
    """Writes tables as JSON Lines; "/" in a name is a folder."""
    for name, rows in tables.items():
        path = folder / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.mark.parametrize("name", ["ood", "testHard", "evaluation"])
def test_a_table_without_a_split_beside_others_is_refused(name: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "data", train=[BRACKETS], test=[BRACKETS], **{name: [BRACKETS]})
    archive = shutil.make_archive(str(folder), "zip", folder)
    message = f"{name}.*: neither the name nor the column task_split "
    for data in (folder, archive, {"train": [BRACKETS], "test": [BRACKETS], name: [BRACKETS]}):
        with pytest.raises(InputError, match=message):
            load(data)
    assert len(load(write(tmp_path / "own", **{name: [BRACKETS]})).train) == 1
    write(tmp_path / "own", train=[BRACKETS], **{name: [BRACKETS | {"task_split": "test"}]})
    assert len(load(tmp_path / "own").test) == 1


def test_a_row_without_a_split_among_others_is_refused(tmp_path: Path) -> None:
    rows = [BRACKETS | {"task_split": split} for split in ("train", "", "test")]
    with pytest.raises(InputError, match=r"all\.jsonl, row 2: neither the name"):
        load(write(tmp_path, all=rows))


def test_a_split_that_a_program_names_counts_whatever_the_rows_say() -> None:
    """Such as the parts of `datasets.Dataset.train_test_split`."""
    rows = [BRACKETS | {"task_split": "train"}]
    assert len(load({"train": rows, "test": rows}).test) == 1


@pytest.mark.parametrize("order", ["alphabetical", "from 1", "of the package"])
def test_numbers_as_targets_are_reported(order: str, capsys) -> None:
    known = {
        "alphabetical": {name: i for i, name in enumerate(sorted(RELATIONS))},
        "from 1": {name: i + 1 for name, i in RELATION_ID.items()},
        "of the package": RELATION_ID,
    }[order]
    wanted = [(("son", "sister"), "daughter"), (("father", "mother"), "grandmother"),
              (("wife", "father"), "father-in-law"), (("sister", "son"), "nephew")]  # fmt: skip
    rows = [
        {"facts": [("Ann", r, "Bob"), ("Bob", s, "Cy")], "query": "Ann, Cy", "target": known[name]}
        for (r, s), name in wanted
    ]
    numbers, *others = said(capsys, rows)
    assert numbers == "data set: numbers in the column target are read as those of CLUTRR/v1 (0 " \
                      "is aunt, 20 is sister-in-law)"  # fmt: skip
    if order == "of the package":
        assert not others
    else:
        (share,) = others
        assert re.match(
            r"data set: \d+% of 4 train targets contradict the facts or genders of", share
        )


def test_numbers_as_targets_that_contradict_genders_are_reported(capsys) -> None:
    row = {"story": "[Ann] met [Bob].", "query": "Ann, Bob", "genders": "Ann:female,Bob:male"}
    assert len(said(capsys, [row | {"target": RELATION_ID["son"]}])) == 1
    assert "100% of 1 train targets contradict" in said(capsys, [row | {"target": 4}])[1]


def test_facts_in_the_other_order_are_reported(capsys) -> None:
    """Of most rows: (Bob, son, Ann) for "Bob is the son of Ann"."""
    backwards = ROW | {"facts": [(y, r, x) for x, r, y in FACTS]}
    assert "67% of 3 train targets contradict" in said(capsys, [backwards, backwards, ROW])[0]
    assert not any("contradict" in line for line in said(capsys, [backwards, ROW, ROW]))


def test_numbers_are_no_targets_of_other_relations() -> None:
    row = {"facts": [("a", "EC", "b"), ("b", "TPP", "c")], "query": "a, c", "target": 3}
    with pytest.raises(InputError, match='"target": unknown label "3", expected DC, EC, PO, TPP,'):
        load([row])


PEOPLE = "without names in [brackets], and without the column names or genders"


@pytest.mark.parametrize(
    ("row", "reported"),
    [
        (PLAIN, True),
        ({**PLAIN, "facts": None}, True),
        (BRACKETS, False),
        (ROW, False),
        (PLAIN | {"names": ["Ann", "Bob", "Cy"]}, False),
        (PLAIN | {"genders": "Ann:female,Bob:male,Cy:female"}, False),
    ],
)
def test_people_that_nothing_names_are_reported(row, reported: bool, capsys) -> None:
    assert any(PEOPLE in line for line in said(capsys, [row])) == reported


def test_ids_of_several_stories_are_reported_and_kept(capsys) -> None:
    rows = [BRACKETS | {"id": id, "story": f"{BRACKETS['story']} {i}"}
            for i, id in enumerate(["a", "b", "a", ""])]  # fmt: skip
    assert load({"test": rows}).test.ids == ["a", "b", "a", ""]
    assert 'several test stories have the same id, such as "a"' in capsys.readouterr().err
    assert not said(capsys, {"train": rows[:1], "test": rows[2:3]})[1:]  # but for the story


@pytest.mark.parametrize("fact", [("Ann", "Bob", "son"), ("son", "Ann", "Bob")])
@pytest.mark.parametrize("names", [None, ["Ann", "Bob"]])
def test_the_order_of_a_fact_is_explained(fact, names) -> None:
    with pytest.raises(InputError) as error:
        load([{"facts": [fact], "query": "Ann, Bob", "target": "son", "names": names}])
    order = "the order is (X, relation, Y), as in ('Ann', 'son', 'Bob'): Bob is the son of Ann"
    assert order in str(error.value)


def test_the_order_of_a_fact_of_other_relations_is_explained() -> None:
    with pytest.raises(InputError, match=r"order is .* as in \('a', 'EC', 'b'\)$"):
        load([{"facts": [("a", "b", "EC")], "query": "a, b", "target": "EC"}])


@pytest.mark.parametrize(
    "same",
    [
        "Ann and her son Bob met his sister Cy. Bob left!",
        "[bob] LEFT! [ANN] and her  son [Bob]\nmet his sister [Cy] .",
    ],
)
def test_the_content_of_a_story_has_no_brackets_case_spaces_and_order(same: str) -> None:
    said, stated = content(BRACKETS["story"], FACTS, ("Ann", "Cy"))
    assert content(same, [], ("Cy", "Ann"))[0] == said
    assert content(same.replace("sister", "brother"), FACTS, ("Ann", "Cy"))[0] != said
    assert content("", FACTS[::-1], ("ANN", "Cy")) == (None, stated)
    assert content("", FACTS, ("Ann", "Bob"))[1] != stated


def test_a_split_is_stated_alike_everywhere(tmp_path: Path) -> None:
    """By the folder, the name of the table and the column; a folder outside does not count."""
    for name, rows in {
        "a/train/x": [BRACKETS | {"task_split": "test"}],
        "b/train/test_x": [BRACKETS],
        "c/train/x": [BRACKETS], "c/test/x": [BRACKETS], "c/ood/x": [BRACKETS],
        "test/e": [BRACKETS | {"task_split": "train"}],
        "f/Train/x": [BRACKETS], "f/Testing/x": [BRACKETS],
        "g/train_val": [BRACKETS], "h/train_test": [BRACKETS],
        "i/all": [BRACKETS | {"split": "test"}],
    }.items():  # fmt: skip
        write(tmp_path, **{name: rows})
    for folder, message in {
        "a": r'x\.jsonl, row 1, column "task_split": the column says test, but the folder train',
        "b": r'test_x\.jsonl, row 1, column "task_split": the name says test, but the folder train',
        "c": "c/ood: the name states no split, as others do; expected train, ",
        "i": 'column "split": "test": expected the name task_split for this column',
        "h": '"task_split": the name says test and train; expected one of them',
    }.items():
        with pytest.raises(InputError, match=message):
            load(tmp_path / folder)
    assert len(load(tmp_path / "test" / "e.jsonl").train) == 1
    assert len(load(tmp_path / "f").test) == len(load(tmp_path / "f").train) == 1
    assert len(load(tmp_path / "g").train) == 1


def test_stories_with_some_names_in_brackets_are_reported(capsys) -> None:
    row = BRACKETS | {"story": "[Ann] and her son Bob met Bob's sister [Cy]."}
    assert (
        "1 stories have some of their names in [brackets] and others not" in said(capsys, [row])[0]
    )
    assert not said(capsys, [BRACKETS | {"story": "[Ann] met [Cy]."}])  # the story lacks Bob


def test_the_targets_of_each_split_are_compared(capsys) -> None:
    """Also few tests beside many train stories, people of the query who change places, and large
    stories."""
    swapped = [ROW | {"query": ("Cy", "Ann")}]
    many = [(f"P{i}", "sister", f"P{i + 1}") for i in range(40)]
    large = [{"facts": [(y, r, x) for x, r, y in many], "query": "P0, P40", "target": "sister"}]
    for tests in (swapped, large):
        lines = said(capsys, {"train": [ROW] * 9, "test": tests})
        assert any("100% of 1 test targets contradict" in line for line in lines)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, ""),
        ({"k": 2}, ""),
        ({"facts": FACTS[::-1], "k": 2}, ""),
        ({"facts": [("Dee", "son", "Ed"), ("Ed", "son", "Flo"), *FACTS], "k": 2}, ""),
        ({"k": 3}, "row 1: k contradicts the facts"),
        ({"facts": [("Dee", "son", "Ed"), *FACTS], "k": 3}, "row 1: k contradicts the facts"),
        ({"genders": "Ann:female,Bob:male,Cy:male"}, "Cy is male by facts or genders"),
        ({"genders": "Ann:female,Bob:female,Cy:female"}, "row 1: genders contradicts the facts"),
        ({"facts": [*FACTS, ("Eve", "brother", "Cy")]}, "row 1: genders contradicts the facts"),
        ({"facts": [(y, r, x) for x, r, y in FACTS]},
         "the label follows if facts are read as (Y, relation, X)"),
        ({"query": "Cy, Ann"}, "the label follows if the people of the query change places"),
        ({"facts": None, "story": "[Ann] met [Cy]."}, "labels are not checked: 1"),
        ({"facts": None, "story": "[Ann] met [Cy].", "genders": "Ann:male,Cy:male"},
         "Cy is male by facts or genders"),
    ],
)  # fmt: skip
def test_the_audit_reads_what_load_reads(change, found: str, tmp_path: Path, capsys) -> None:
    row = {name: cell for name, cell in (ROW | change).items() if cell is not None}
    code = main(["audit", str(write(tmp_path, own_test=[row]))])
    out = capsys.readouterr().out
    assert code == ("WRONG" in out) and found in out
    if not found:
        assert "contradicts" not in out and "not checked" not in out
