import csv
import itertools
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.__main__ import main
from generator.errors import InputError
from generator.kinship import GENDER_OF, GENDERS, RELATION_ID, RELATIONS
from generator.paraphrases.importer import Story, candidate_pieces, cut, import_bank
from generator.paraphrases.load import read_bank, save_bank
from generator.text import Bank

SON, SISTER, WIFE = (RELATION_ID[r] for r in ("son", "sister", "wife"))
MAN = GENDERS.index("male")
ONE = {
    (MAN, (SON,)): (
        "{0} bakes bread with {1}, his son.",
        "{1} is a son of {0}",  # a full stop is missing, as in some that the crowd wrote
        "{0} took his son {1} to a match. They won!",
    ),
    (MAN, (SISTER,)): (
        "{0} sold his bike to his sister {1}.",
        "It was late. {1} called her brother {0}.",
        "{0} is proud of {1}, his sister. Nobody doubts it.",
    ),
}
TWO = {(MAN, (SON, SISTER)): ("{1} and his sister {2} surprised {0}. He hugged his son {1}.",)}
NAMES = [f"Name{i}" for i in range(60)]
PATH = (SON, SISTER)


def written(number, seed=0, templates=None):
    """Stories of a man, his son and the son's sister, and the templates of each."""
    chance = random.Random(seed)
    told = []
    for _ in range(number):
        names = tuple(chance.sample(NAMES, 3))
        pairs = list(itertools.product(ONE[MAN, (SON,)], ONE[MAN, (SISTER,)]))
        chosen = chance.choice([*pairs, *[(text,) for text in TWO[MAN, PATH]] * 4])
        text, first = [], 0
        for template in chosen:
            facts = 2 if len(chosen) == 1 else 1
            text.append(template.format(*(f"[{n}]" for n in names[first : first + facts + 1])))
            first += facts
        told.append((Story(" ".join(text), names, MAN, PATH), list(chosen)))
    return told


def table(path, told):
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, [
            "story", "clean_story", "query", "target", "f_comb", "task_name", "story_edges",
            "edge_types", "query_edge", "genders",
        ])  # fmt: skip
        out.writeheader()
        for story, _ in told:
            genders = [story.gender, *(GENDER_OF[r] for r in story.relations)]
            people = zip(story.people, genders, strict=True)
            out.writerow({
                "story": story.text,
                "clean_story": story.text,
                "query": str((story.people[0], story.people[-1])),
                "target": "daughter",
                "f_comb": "-".join(RELATIONS[r] for r in story.relations),
                "task_name": "task_1.2",
                "story_edges": "[(0, 1), (1, 2)]",
                "edge_types": str([RELATIONS[r] for r in story.relations]),
                "query_edge": "(0, 2)",
                "genders": ",".join(f"{name}:{GENDERS[g]}" for name, g in people),
            })  # fmt: skip
    return path


def test_finds_the_paraphrases_that_stories_were_joined_from():
    told = written(400)
    whole, seen = cut([story for story, _ in told])
    assert [[t.text for t in path] for path in whole] == [chosen for _, chosen in told]
    found = {t.text for t in seen}
    assert found == {text for texts in (*ONE.values(), *TWO.values()) for text in texts}


@given(st.integers(0, 1000))
def test_pieces_of_a_story_put_together_are_the_story(seed):
    told = written(60, seed)
    whole, _ = cut([story for story, _ in told])
    for (story, _), path in zip(told, whole, strict=True):
        if path is None:
            continue
        first, text = 0, []
        for (_, relations), template in path:
            names = story.people[first : first + len(relations) + 1]
            text.append(template.format(*(f"[{name}]" for name in names)))
            first += len(relations)
        assert first == len(story.relations)
        assert " ".join(text) == story.text


def test_a_piece_names_the_people_of_its_facts_and_no_others():
    (story, _), *_ = written(1)
    for piece in candidate_pieces(story).pieces:
        facts = piece.last - piece.first
        assert len(piece.template.clause[1]) == facts
        assert all(f"{{{i}}}" in piece.template.text for i in range(facts + 1))
        assert "[" not in piece.template.text


def test_what_comes_back_nowhere_is_not_taken():
    told = written(200)
    names = ("Ann", "Bob", "Cid")
    odd = Story("[Ann] likes [Bob], a son, but not [Cid], a sister of [Bob].", names, MAN, PATH)
    whole, seen = cut([*(story for story, _ in told), odd])
    assert whole[-1] is None
    assert not any("likes" in t.text for t in seen)


def test_a_person_met_twice_is_no_piece():
    story = Story("[Ann] hit [Bob]. [Bob] hit [Ann].", ("Ann", "Bob", "Ann"), MAN, (WIFE, WIFE))
    assert {piece.last - piece.first for piece in candidate_pieces(story).pieces} == {1}


def test_command_writes_a_bank_that_can_be_read(tmp_path, capsys):
    file, out = table(tmp_path / "1.2_train.csv", written(400)), tmp_path / "bank.json"
    assert main(["import-paraphrases", str(file), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "400 of 400, 100.0 %" in printed and "k = 2: 1 templates" in printed
    assert read_bank(out).templates == import_bank([file], "bank")[0].templates
    assert main(["stats", str(out), str(file)]) == 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("[A] {0} [B] [C]", "braces"), ("", "clean_story"), ("[A] likes [B] and [C].", "recurs")],
)
def test_unusable_stories_end_with_one_line(tmp_path, capsys, text, complaint):
    story = Story(text, ("A", "B", "C"), MAN, PATH)
    file, out = table(tmp_path / "train.csv", [(story, [])]), tmp_path / "bank.json"
    assert main(["import-paraphrases", str(file), "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert complaint in error and error.count("\n") == 1
    assert not list(tmp_path.glob("bank*"))


def test_unusable_arguments(tmp_path, capsys):
    file = table(tmp_path / "train.csv", written(50))
    for arguments in (
        [str(file)],
        [str(file), "--out", str(tmp_path / "nowhere" / "bank.json")],
        [str(tmp_path / "none.zip"), "--out", str(tmp_path / "bank.json")],
    ):
        assert main(["import-paraphrases", *arguments]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_save_bank_leaves_nothing_half_written(tmp_path):
    (tmp_path / "bank.json").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        save_bank(Bank("small", ONE), tmp_path / "bank.json")
    saved = tmp_path / "other.json"
    save_bank(Bank("small", ONE), saved)
    assert json.loads(saved.read_text())["name"] == "small"
    assert read_bank(saved).templates == ONE
