"""The published columns: parsing inverts formatting, and bad cells are reported."""

import csv
import io
import re
from functools import partial
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.cells import REQUIRED
from generator.columns import COLUMNS, format_row, story_row
from generator.data_sets import data_sets
from generator.errors import InputError
from generator.kinship import NUM_RELATIONS, RELATION_ID
from generator.names import NAMES
from generator.rows import parse_rows

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
    return list(parse_rows(file, csv.reader(io.StringIO(table(*changes).decode(), newline=""))))


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
    text = st.text(max_size=80).map(partial(normalize, "NFC"))
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
    (row,) = parse_rows("all.csv", [COLUMNS, format_row(*story)])
    assert row == story[0]


def test_cells_of_other_origin() -> None:
    """Numeric targets (Hugging Face), double quotes, missing relations, missing columns."""
    change = {"target": "3", "edge_types": '["son"]', "story_edges": "[(0,1),( 1 , 2)]"}
    (row,) = parse(change)
    assert row.target == 3 and row.relations == (RELATION_ID["son"],)
    assert row.edges == ((0, 1), (1, 2)) and row.clause == "son"
    assert row.id == row.clean_story == ""


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
        ("test/all.csv", "train", "train"),
        ("all.csv", "test", "test"),
        ("all.csv", "dev", "dev"),
        ("all.csv", "validation", "dev"),
        ("all.csv", "val", "dev"),
        ("all.csv", "", "train"),
        ("latest.csv", "train", "train"),  # only a whole word states a split
        ("constrained.csv", "test", "test"),
        *(
            (f"{word}.csv", cell, split)
            for word in (
                "devices",
                "values",
                "testimony",
                "trainees",
                "valley",
                "validated",
                "my-devices_1",
                "Developers",
                "traintest",
            )
            for cell, split in (("test", "test"), ("train", "train"), ("", "train"))
        ),
        *(
            (f"{word}{end}.csv", "", split)
            for end in ("", "23", "_a", "-1", "set", "_data", "data")
            for word, split in (
                ("test", "test"),
                ("1.2_tests", "test"),
                ("testing", "test"),
                ("Train", "train"),
                ("a-training", "train"),
                ("val", "dev"),
                ("valid", "dev"),
                ("validation", "dev"),
                ("dev", "dev"),
                ("development", "dev"),
            )
        ),
        ("val/all.csv", "", "dev"),
        ("gen_train23_test2to10.csv", "train", "train"),  # a name of two splits states none
        ("train_test.csv", "test", "test"),
        ("test/0000.parquet", "", "test"),
        ("train/0000.parquet", "", "train"),
        ("validation/0000.parquet", "", "dev"),
    ],
)
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


BAD_CELLS = [
    ("target", "cousin", 'unknown label "cousin"'),
    ("target", "22", 'unknown label "22"'),
    ("edge_types", "['son', 'boss']", 'unknown relation "boss"'),
    ("edge_types", "['son', 'son', 'son']", "3 relations for 2 story_edges"),
    ("edge_types", "son", "expected a list of relations"),
    ("edge_types", "[]", "no relations"),
    ("edge_types", "__import__('os')", "expected a list of relations"),
    ("story_edges", "[(0, 1), (1, 9)]", "no person 9: the row has 3 people"),
    ("story_edges", "[]", "0 edges, expected 1 to 1,000"),
    ("story_edges", str([(0, 1)] * 1001), "1,001 edges, expected 1 to 1,000"),
    ("story_edges", "[(0, 1)", "expected a list of pairs"),
    ("query_edge", "(0, 7)", "no person 7"),
    ("query_edge", "(2, 2)", "(2, 2): expected two different people"),
    ("story_edges", "[(0, 1), (1, 1), (1, 2)]", "(1, 1): expected two different people"),
    ("story_edges", "[(0, 1), (1, 2), (0, 0)]", "(0, 0): expected two different people"),
    ("query_edge", "0", "expected a pair such as"),
    ("query", "Ann; Cy", "expected a pair of names"),
    ("genders", "Ann:female,Bob:male,Cy", '"Cy": expected NAME:male or NAME:female'),
    ("genders", "Ann:female,Ann:male,Cy:male", "a name occurs twice"),
    ("genders", "\u00e9:male,e\u0301:male", "a name occurs twice"),
    ("genders", ",".join(f"N{i}:male" for i in range(151)), "151 people, expected at most 150"),
    ("task_name", "seven", "expected a task such as task_1.3"),
    ("target", "6", '"6" is mother, but target_text is "daughter"'),
    ("task_name", "1.1", "expected a task such as task_1.10"),  # 1.10 as a number
    ("task_name", "task_1.0", "expected a task such as task_1.3"),
    ("story", "x" * 40_000, "40,000 characters, expected at most 32,768"),
    ("clean_story", "x" * 40_000, "40,000 characters, expected at most 32,768"),
]


@pytest.mark.parametrize(("column", "cell", "message"), BAD_CELLS)
def test_a_bad_cell_is_reported(column: str, cell: str, message: str) -> None:
    place = f'x_train.csv, row 2, column "{column}": '
    with pytest.raises(InputError, match=f"^{place}.*{re.escape(message)}"):
        parse({"target_text": "daughter"}, {column: cell, "target_text": "daughter"})


def test_a_row_of_an_unknown_split_is_reported() -> None:
    with pytest.raises(InputError, match='"task_split": "eval": expected train, validation or'):
        parse({"task_split": "eval"})


def test_a_repeated_column_is_reported() -> None:
    """Two columns without a name are no problem."""
    header, cells = [*ROW, "", "target"], [*ROW.values(), "0", "aunt"]
    assert len(list(parse_rows("x.csv", [header[:-1], cells[:-1]]))) == 1
    with pytest.raises(InputError, match=r'^x\.csv: 2 columns "target", expected one'):
        list(parse_rows("x.csv", [header, cells]))


@pytest.mark.parametrize("column", REQUIRED)
def test_a_missing_column_is_reported(column: str) -> None:
    header = [name for name in ROW if name != column]
    with pytest.raises(InputError, match=f'^x.csv: no column "{column}".*; found .*task_split'):
        list(parse_rows("x.csv", [header, [ROW[name] for name in header]], REQUIRED))
