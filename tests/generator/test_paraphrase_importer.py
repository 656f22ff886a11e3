import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.__main__ import main
from generator.paraphrases.importer import Story, candidate_pieces, cut, import_bank
from generator.paraphrases.load import read_bank
from generator.relations.kinship import GENDER_OF, GENDERS, RELATION_ID, RELATIONS
from tests.generator.tables.test_columns import table

SON, SISTER, WIFE = (RELATION_ID[r] for r in ("son", "sister", "wife"))
MAN = GENDERS.index("male")
ONE = {
    (MAN, (SON,)): (
        "{0} bakes bread with {1}, his son.",
        "{1} is a son of {0}",  # without full stop, like some crowd-sourced paraphrases
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


def random_stories(count, seed=0):
    """Stories about a man, his son and the son's sister, and the templates of each."""
    rng = random.Random(seed)
    stories = []
    for _ in range(count):
        names = tuple(rng.sample(NAMES, 3))
        pairs = list(itertools.product(ONE[MAN, (SON,)], ONE[MAN, (SISTER,)]))
        chosen = rng.choice([*pairs, *[(text,) for text in TWO[MAN, PATH]] * 4])
        text, first = [], 0
        for template in chosen:
            facts = 2 if len(chosen) == 1 else 1
            text.append(template.format(*(f"[{n}]" for n in names[first : first + facts + 1])))
            first += facts
        stories.append((Story(" ".join(text), names, MAN, PATH), list(chosen)))
    return stories


def write_csv(path, stories):
    rows = []
    for story in stories:
        genders = [story.gender, *(GENDER_OF[r] for r in story.relations)]
        people = zip(story.people, genders, strict=True)
        rows.append({
            "story": story.text or "Some text.",
            "clean_story": story.text,
            "query": str((story.people[0], story.people[-1])),
            "edge_types": str([RELATIONS[r] for r in story.relations]),
            "genders": ",".join(f"{name}:{GENDERS[g]}" for name, g in people),
        })  # fmt: skip
    path.write_bytes(table(*rows))
    return path


def test_stories_are_cut_into_their_paraphrases():
    stories, chosen = zip(*random_stories(400), strict=True)
    templates, count = cut(stories)
    assert [[t.text for t in path] for path in templates] == list(chosen)
    expected = {text for texts in (*ONE.values(), *TWO.values()) for text in texts}
    assert {t.text for t in count} == expected


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_templates_of_a_story_reproduce_its_text(seed):
    stories = [story for story, _ in random_stories(60, seed)]
    for story, path in zip(stories, cut(stories)[0], strict=True):
        if path is None:
            continue
        first, text = 0, []
        for (_, relations), template in path:
            names = story.people[first : first + len(relations) + 1]
            text.append(template.format(*(f"[{name}]" for name in names)))
            first += len(relations)
        assert first == len(story.relations)
        assert " ".join(text) == story.text


def test_paraphrases_that_do_not_recur_are_discarded():
    stories = [story for story, _ in random_stories(200)]
    names = ("Ann", "Bob", "Cid")
    odd = Story("[Ann] likes [Bob], a son, but not [Cid], a sister of [Bob].", names, MAN, PATH)
    templates, count = cut([*stories, odd])
    assert templates[-1] is None
    assert not any("likes" in t.text for t in count)


def test_pieces_do_not_repeat_people():
    story = Story("[Ann] hit [Bob]. [Bob] hit [Ann].", ("Ann", "Bob", "Ann"), MAN, (WIFE, WIFE))
    assert {piece.last - piece.first for piece in candidate_pieces(story)[0]} == {1}


def test_command_writes_a_bank_that_can_be_read(tmp_path, capsys):
    stories = [story for story, _ in random_stories(400)]
    file, out = write_csv(tmp_path / "1.2_train.csv", stories), tmp_path / "bank.json"
    assert main(["import-paraphrases", str(file), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "400 of 400, 100.0 %" in printed and "k = 2: 1 paraphrases" in printed
    assert read_bank(out).templates == import_bank([file], "bank")[0].templates
    assert main(["stats", str(out), str(file)]) == 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("[A] {0} [B] [C]", "braces"), ("", "clean_story"), ("[A] likes [B] and [C].", "recurs")],
)
def test_errors_for_unusable_stories(tmp_path, capsys, text, complaint):
    story = Story(text, ("A", "B", "C"), MAN, PATH)
    file, out = write_csv(tmp_path / "train.csv", [story]), tmp_path / "bank.json"
    assert main(["import-paraphrases", str(file), "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert complaint in error and error.count("\n") == 1
    assert not list(tmp_path.glob("bank*"))
