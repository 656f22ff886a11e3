import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.__main__ import main
from generator.paraphrases.bank import bank
from generator.paraphrases.statistics import PAPER, overlap, statistics, table, tokens
from generator.stories.text import Bank

TEXTS = st.lists(st.text("ab {}01.", max_size=12), max_size=5)


def test_tokens():
    assert tokens("{0}'s Mother-in-law, {1}, didn't say: caf\u00e9 12!") == [
        "{0}", "mother-in-law", "{1}", "didn't", "say", "caf\u00e9"
    ]  # fmt: skip


def test_overlap_of_two_texts():
    # 2 of 4 words and 1 of 3 bigrams are shared.
    assert overlap(["{0} saw {1}", "{0} saw her"]) == (2 / 4, 1 / 3, 1)


@given(TEXTS)
def test_overlap_per_pair_is_between_0_and_1(texts):
    unigrams, bigrams, pairs = overlap(texts)
    assert pairs == len(texts) * (len(texts) - 1) / 2
    assert 0 <= unigrams <= pairs and 0 <= bigrams <= pairs
    assert overlap(texts[::-1]) == pytest.approx((unigrams, bigrams, pairs))


def test_overlap_is_a_sum_over_pairs_of_texts():
    # Words: 1, 1/3 and 1/3. Bigrams: 1, 0 and 0.
    assert overlap(["a b", "a b", "b c"]) == (pytest.approx(5 / 3), 1, 3)


def test_overlaps_of_a_bank_are_means_over_pairs_of_the_same_clause():
    small = Bank("small", {
        (0, (15,)): ("{0} saw {1}", "{0} saw her {1}"),
        (1, (15,)): ("{0} a {1}", "{0} b {1}", "{0} c {1}"),
    })  # fmt: skip
    found = statistics(small)
    # 1 + 3 pairs. Words: 3/4 and three times 2/4. Bigrams: 1/4 and three times 0.
    assert found.unigrams == pytest.approx((3 / 4 + 3 * 2 / 4) / 4)
    assert found.bigrams == pytest.approx((1 / 4) / 4)


def test_statistics_of_a_small_bank():
    small = Bank("small", {
        (0, (15,)): ("{0} has a son, {1}.", "{1} is a son of {0}."),
        (1, (15,)): ("{0} has a son, {1}.",),
        (0, (15, 3)): ("{0}, {1}, {2}",),
    })  # fmt: skip
    found = statistics(small)
    assert found.paraphrases == (2, 1, 0)
    assert found.clauses == (1, 1, 0)
    assert found.words == len({"has", "a", "son", "is", "of"})
    assert found.unigrams == pytest.approx(4 / 7)
    assert found.bigrams == pytest.approx(1 / 8)  # "a son"


def test_embedded_bank_is_at_least_as_diverse_as_the_paper():
    found = statistics(bank())
    assert all(a >= b for a, b in zip(found.paraphrases, PAPER.paraphrases, strict=True))
    assert all(a >= b for a, b in zip(found.clauses, PAPER.clauses, strict=True))
    assert found.words >= PAPER.words
    assert found.unigrams <= PAPER.unigrams
    assert found.bigrams <= PAPER.bigrams


def test_table_has_a_column_per_bank_and_one_for_the_paper():
    banks = [Bank(name, {(0, (15,)): ("{0} {1}",)}) for name in ("one", "two")]
    lines = table(banks).splitlines()
    assert lines[0].split() == ["one", "two", "paper"]
    assert len({len(line) for line in lines}) == 1
    assert lines[4].split()[-1] == "6,016"


def test_command(capsys, tmp_path):
    empty = tmp_path / "empty.json"
    empty.write_text('{"templates": {}}')
    assert main(["stats", str(empty)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["stats"]) == 0
    assert "unique words" in capsys.readouterr().out
    assert main(["stats", "nowhere.json"]) == 2
    error = capsys.readouterr().err
    assert "nowhere.json" in error and error.count("\n") == 1
