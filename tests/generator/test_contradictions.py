"""Sentences that state another relation than the facts."""

import json
from pathlib import Path

import pytest

from generator.audit import main
from generator.contradictions import contradictions
from generator.data_sets import data_sets
from generator.errors import InputError
from generator.tables.rows import parse_rows


@pytest.mark.parametrize(
    ("sentence", "is_found"),
    [
        ("[Ann] took her son [Bob] out for pizza.", False),
        ("[Bob] took his mother, [Ann], out for pizza.", False),
        ("[Ann] took her brother [Bob] out for pizza.", True),
        ("[Bob] took his daughter [Ann] out for pizza.", True),
        ("[Bob] took her daughter [Ann] out for pizza.", False),  # of somebody else
        ("Then [Bob], her brother, [Ann] and a dog left.", False),
        ("[Ann]'s uncle, [Bob], called.", True),
        ("[Ann]'s son, [Bob], called.", False),
        ("[Ann] likes his pizza. [Bob] called.", False),
        ("[Bob] and his teacher [Ann] met.", False),
        ("[Bob] went home. His sister [Ann] did not.", False),  # of a person in another sentence
    ],
)
def test_sentences_by_hand(sentence: str, is_found: bool) -> None:
    """Bob is the son of Ann; the fact is stated in one direction only."""
    cells = {"story": sentence, "facts": [("Ann", "son", "Bob")], "query": ("Ann", "Bob"),
             "target": "son", "genders": "Ann:female,Bob:male"}  # fmt: skip
    (row,) = parse_rows("test", [cells])
    found = contradictions(row)
    assert bool(found) == is_found
    assert all(one.fact == "Bob is the son of Ann" for one in found)


def test_templates_state_the_facts(small_folder: Path) -> None:
    """Stories in template sentences are never found."""
    (_, tables), *_ = data_sets([small_folder])
    assert not [row.id for table in tables for row in table.rows if contradictions(row)]


def test_the_command_writes_the_ids_of_the_other_tests(tmp_path: Path, capsys) -> None:
    sentences = {"right": "[Ann] took her son [Bob] out.", "wrong": "[Bob] took his son [Ann] out."}
    lines = [
        json.dumps({"id": id, "story": sentence, "facts": [("Ann", "son", "Bob")],
                    "query": ("Ann", "Bob"), "target": "son", "genders": "Ann:female,Bob:male"})
        for id, sentence in sentences.items()
    ]  # fmt: skip
    (tmp_path / "test.jsonl").write_text("\n".join(lines))
    assert main(["--text", str(tmp_path), "--clean", str(tmp_path / "clean.txt")]) == 0
    printed = capsys.readouterr().out
    assert "wrong: [Bob] took his son [Ann]: Bob is the son of Ann" in printed
    assert (tmp_path / "clean.txt").read_text() == "right\n"
    # As for the other commands, the ids are T.K/ROW if two stories have the same one.
    (tmp_path / "test.jsonl").write_text(
        "\n".join(line.replace("wrong", "right") for line in lines)
    )
    command = ["--text", str(tmp_path), "--clean", str(tmp_path / "clean.txt")]
    assert main(command) == 0
    assert (tmp_path / "clean.txt").read_text() == "0.0/1\n"
    (tmp_path / "other").mkdir()
    (tmp_path / "other/test.jsonl").write_text(lines[0])
    with pytest.raises(InputError, match="2 data sets, expected one, whose ids it has"):
        main([*command[:2], str(tmp_path / "other"), *command[2:]])
