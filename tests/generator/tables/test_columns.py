"""The published columns: parsing inverts formatting, and bad cells are reported."""

import csv
import io
import re
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.data_sets import data_sets
from generator.errors import InputError
from generator.relations.kinship import NUM_RELATIONS, RELATION_ID
from generator.stories.names import NAMES
from generator.tables.columns import COLUMNS, format_row, story_row
from generator.tables.readers import csv_rows
from generator.tables.rows import parse_rows

ROW = {
    "": "0",
    "story": "[Ann] and her son [Bob] met [Bob]'s sister [Cy].",
    "query": "('Ann', 'Cy')",
    "target": "daughter",
    "task_name": "task_1.2",
    "story_edges": "[(0, 1), (1, 2)]",
    "edge_types": "['son', 'sister']",
    "query_edge": "(0, 2)",
    "genders": "Ann:female,Bob:male,Cy:female",
    "task_split": "train",
}


def table(*changes: dict[str, str]) -> bytes:
    """A CSV file with one row for each set of changed cells."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys([*ROW, *(c for x in changes for c in x)])))
    writer.writeheader()
    writer.writerows({**ROW, **change} for change in changes)
    return text.getvalue().encode()


def parse(*changes: dict[str, str], file: str = "x_train.csv"):
    return list(parse_rows(file, csv_rows(file, io.BytesIO(table(*changes)))))


@pytest.mark.parametrize(
    ("names", "story", "expected"),
    [
        ("Ann Bob Cy", "Ann and her son Bob met Bob's sister Cy.",
         "[Ann] and her son [Bob] met [Bob]'s sister [Cy]."),
        ("Ann Anna Jo-Ann", "Anna, Jo-Ann, Joann, Ann", "[Anna], [Jo-Ann], Joann, [Ann]"),
        ("A. Bob Cy", "A. met Bob, Cy", "[A.] met [Bob], [Cy]"),
        ("Ann Bob Cy", "[Ann] met Bob and Cy.", "[Ann] met Bob and Cy."),
        ("Ann Bob Cy", "Ann [sic] met Bob and Cy.", "[Ann] [sic] met [Bob] and [Cy]."),
    ],
)  # fmt: skip
def test_names_of_a_story_without_brackets_are_found(names, story, expected) -> None:
    genders = ",".join(f"{name}:male" for name in names.split())
    (row,) = parse({"story": story, "clean_story": story, "genders": genders})
    assert row.story == row.clean_story == expected


@st.composite
def stories(draw):
    """A row, and the other arguments of `format_row`."""
    n = draw(st.integers(2, 12))
    people = st.integers(0, n - 1)
    pair = st.lists(people, min_size=2, max_size=2, unique=True).map(tuple)
    # A cell of blanks is missing.
    text = st.text(max_size=80).map(lambda text: normalize("NFC", text) if text.strip() else "")
    relation = st.integers(0, NUM_RELATIONS - 1)
    edges = draw(st.lists(pair, min_size=1, max_size=12))
    step = st.tuples(people, people, people, relation, relation, relation)
    row = story_row(
        row_index=1,
        id=str(draw(st.uuids())),
        story=draw(text.filter(str.strip)),
        clean_story=draw(text),
        names=draw(st.permutations(NAMES[0]))[:n],
        genders=tuple(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))),
        edges=tuple(edges),
        relations=draw(st.lists(relation, min_size=len(edges), max_size=len(edges))),
        query=draw(pair),
        target=draw(relation),
        noise=draw(st.integers(1, 7)),
        k=draw(st.integers(1, len(edges))),
        split=draw(st.sampled_from(["train", "dev", "test"])),
    )
    stated_target = draw(st.lists(st.text(max_size=9), max_size=2))
    return row, stated_target, draw(st.lists(step, max_size=3)), list(range(n))


@given(story=stories())
@settings(max_examples=60)
def test_parsing_inverts_formatting(story) -> None:
    (row,) = parse_rows("all.csv", [dict(zip(COLUMNS, format_row(*story), strict=True))])
    assert row == story[0]


@pytest.mark.parametrize(
    "change",
    [
        {"target": " Daughter ", "edge_types": '["Son", "SISTER"]'},
        {"story_edges": "[[0, 1], [1, 2]]", "query_edge": "[0, 2]", "query": "['Ann', 'Cy']"},
        {"genders": "Ann:Female, Bob:male, Cy: female"},
    ],
)
def test_other_spellings_of_a_row_equal_the_row(change) -> None:
    assert parse(change) == parse({})


@pytest.mark.parametrize("number", ["16", "16.0", " 16"])
def test_a_number_of_clutrr_v1_is_a_target(number: str) -> None:
    (row,), (expected,) = parse({"target": number}), parse({})
    assert row == expected._replace(by_number=True)
    (row,) = parse({"target": number, "target_text": "daughter"})
    assert row == expected
    (row,) = parse({"target": number, "target_text": "heir"})
    assert row.by_number


def test_relations_with_spaces_or_underscores() -> None:
    (row,) = parse({"target": "mother in law", "edge_types": "['Mother-in-law', 'son_in_law']"})
    assert row.target == row.relations[0] == RELATION_ID["mother-in-law"]
    assert row.relations[1] == RELATION_ID["son-in-law"]


@pytest.mark.parametrize("column", ["story", "clean_story", "query", "genders", "all"])
@pytest.mark.parametrize("name", ["Zoé", "Åke", "한"])
def test_composed_and_decomposed_accents_are_the_same_name(name: str, column: str) -> None:
    """Only an id keeps its accents."""
    composed = {c: cell.replace("Ann", name) for c, cell in ROW.items()}
    composed["clean_story"] = composed["story"].replace("[", "").replace("]", "")
    other = {c: normalize("NFD", cell) for c, cell in composed.items() if column in (c, "all")}
    assert normalize("NFD", name) != name and parse(composed | other) == parse(composed)
    assert parse({"id": normalize("NFD", name)})[0].id == normalize("NFD", name)


def test_neice_is_read_as_niece(capsys) -> None:
    types = {"edge_types": "['son', 'neice']", "f_comb": "son-neice"}
    first, second, third = parse(types, {"target": "neice", "f_comb": ""}, {}, file="neice.csv")
    assert first.relations[1] == second.target == RELATION_ID["niece"]
    assert first.clause == "son-niece" and third.relations[1] == RELATION_ID["sister"]
    assert capsys.readouterr().err == 'neice.csv: "neice" is read as "niece"\n'


@pytest.mark.parametrize(
    ("file", "cell", "split"),
    [
        ("1.2_test.csv", "test", "test"),
        ("1.2_TRAIN.csv", "dev", "train"),
        ("validation-00000.parquet", "train", "dev"),
        ("test/all.csv", "train", "train"),  # a folder outside the data set
        ("val/all.csv", "", "dev"),
        ("all.csv", "", "train"),
        *(("all.csv", cell, split) for cell, split in
          (("test", "test"), ("dev", "dev"), ("validation", "dev"), ("val", "dev"))),
        ("gen_train23_test2to10.csv", "train", "train"),  # a name of two splits states none
        ("train_test.csv", "test", "test"),
        # Only a whole word states a split.
        *((f"{word}.csv", "test", "test") for word in
          ("latest", "constrained", "devices", "testimony", "trainees", "traintest")),
        *((f"1.2_{word}{end}.csv", "", split) for end in ("", "23", "_a", "-1", "set", "data")
          for word, split in (("tests", "test"), ("testing", "test"), ("Train", "train"),
                              ("training", "train"), ("valid", "dev"), ("development", "dev"))),
    ],
)  # fmt: skip
def test_the_split_of_a_row_is_that_of_the_file_name_the_column_or_the_folder(
    file, cell, split
) -> None:
    (row,) = parse({"task_split": cell}, file=file)
    assert row.split == split


def test_a_file_of_several_splits_is_several_tables(tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    path.write_bytes(table({"task_split": "test"}, {}, {"task_split": "test"}))
    ((_, tables),) = data_sets([path])
    found = {t.name: (t.split, [row.row_index for row in t.rows]) for t in tables}
    assert found == {"all.csv (train)": ("train", [2]), "all.csv (test)": ("test", [1, 3])}


@pytest.mark.parametrize(
    ("file", "cell", "said"),
    [("my_test.csv", "train", "test"), ("1.2_TRAIN.csv", "test", "train"),
     ("val.csv", "test", "dev"), ("a/b_testset.csv", "dev", "test")]
)  # fmt: skip
def test_a_file_name_that_contradicts_the_column_is_refused(file, cell, said) -> None:
    place = f'{file}, row 1, column "task_split": '
    message = f"{place}the name says {said}, but the column {cell}; expected the same"
    with pytest.raises(InputError, match=re.escape(message)):
        parse({"task_split": cell}, file=file)


BAD_CELLS = {
    "target": ["cousin", "22", "6"],  # 6 is mother, but target_text is daughter
    "edge_types": ["['son', 'boss']", "['son', 'son', 'son']", "son", "[]", "", "__import__('os')"],
    "story_edges": ["[(0, 1), (1, 9)]", "[]", "", "[(0, 1)", str([(0, 1)] * 1001), "[(0, 1, 2)]",
                    "[(0, 1), (1, 1), (1, 2)]", "[(0, -1), (1, 2)]", "[(0, 1), (1, 2), (0, 0)]"],
    "query_edge": ["(0, 7)", "(2, 2)", "0", "(0, 1.5)", "(0, True)" * 1000],
    "query": ["Ann; Cy", "('Ann', 'Bob', 'Cy')", "('Ann', '')"],
    "genders": ["Ann:female,Bob:male,Cy", "Ann:female,Ann:male,Cy:male", ",:male",
                "\u00e9:male,e\u0301:male", ",".join(f"N{i}:male" for i in range(151))],
    "task_name": ["seven", "1.1", "task_1.0"],  # 1.10 as a number
    "story": ["x" * 40_000],
    "clean_story": ["x" * 40_000],
    "task_split": ["eval"],
}  # fmt: skip


@pytest.mark.parametrize("column", BAD_CELLS)
def test_a_bad_cell_is_reported(column: str) -> None:
    for cell in BAD_CELLS[column]:
        with pytest.raises(InputError) as error:
            parse({"target_text": "daughter"}, {column: cell, "target_text": "daughter"})
        assert str(error.value).startswith(f'x_train.csv, row 2, column "{column}": '), cell
        assert len(str(error.value)) < 800


def test_a_repeated_column_is_reported() -> None:
    """Two columns without a name are no problem."""
    header, cells = ",".join([*ROW, "", "target"]), ",".join(["a"] * (len(ROW) + 2))
    with pytest.raises(InputError, match=r'^x\.csv: 2 columns "target", expected one'):
        next(csv_rows("x.csv", io.BytesIO(f"{header}\n{cells}".encode())))
    header = header.removesuffix(",target")
    assert next(csv_rows("x.csv", io.BytesIO(f"{header}\n{cells[:-2]}".encode())))[""] == "a"
