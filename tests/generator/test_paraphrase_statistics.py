import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.__main__ import main
from generator.paraphrases.bank import bank
from generator.paraphrases.statistics import PAPER, overlap, statistics, tokens
from generator.stories.text import Bank

TEXTS = st.lists(st.text("ab {}01.", max_size=12), max_size=5)


def test_tokens():
    assert tokens("{0}'s Mother-in-law, {1}, didn't say: caf\u00e9 12!") == [
        "{0}", "mother-in-law", "{1}", "didn't", "say", "caf\u00e9"
    ]  # fmt: skip


@given(TEXTS)
def test_overlap_per_pair_is_between_0_and_1(texts):
    unigrams, bigrams, pairs = overlap(texts)
    assert 0 <= unigrams <= pairs and 0 <= bigrams <= pairs
    assert overlap(texts[::-1]) == pytest.approx((unigrams, bigrams, pairs))


def test_statistics_of_a_small_bank():
    """Overlaps are means over pairs of the same clause."""
    small = Bank("small", {
        (0, (15,)): ("{0} has a son, {1}.", "{1} is a son of {0}."),
        (1, (15,)): ("{0} has a son, {1}.", "{0} a {1}", "{0} b {1}"),
        (0, (15, 3)): ("{0}, {1}, {2}",),
    })  # fmt: skip
    found = statistics(small)
    assert list(found.values())[:7] == [4, 1, 0, 5, 1, 1, 0]
    assert found["unique words"] == len({"has", "a", "son", "is", "of", "b"})
    unigrams, bigrams = list(found.values())[-2:]
    assert unigrams == pytest.approx((4 / 7 + 3 / 5 + 2 / 6 + 2 / 4) / 4)
    assert bigrams == pytest.approx((1 / 8 + 0 + 0 + 0) / 4)  # "a son"


def test_embedded_bank_is_at_least_as_diverse_as_the_paper():
    for name, value in statistics(bank()).items():
        assert value <= PAPER[name] if "overlap" in name else value >= PAPER[name]


def test_command(capsys, tmp_path):
    empty = tmp_path / "empty.json"
    empty.write_text('{"templates": {}}')
    for file in (str(empty), "nowhere.json"):
        assert main(["stats", file]) == 2
        error = capsys.readouterr().err
        assert file.removesuffix(".json").rpartition("/")[2] in error and error.count("\n") == 1
    assert main(["stats"]) == 0
    assert "unique words" in capsys.readouterr().out
