"""Words: tokens, ends of sentences, and words for relations."""

import pytest

from clutrr_jax.data.vocabulary import RELATION_WORDS, sentences, special_tokens, words_of
from generator.relations.kinship import GENDER_OF, PREDICATE_ID, PREDICATE_OF, RELATIONS

MALE, FEMALE, EITHER = -1, 1, 0


@pytest.mark.parametrize(
    ("word", "predicate", "sign"),
    [
        ("aunt", "inv-un", FEMALE), ("uncles", "inv-un", MALE), ("dad", "inv-child", MALE),
        ("wives", "SO", FEMALE), ("kids", "child", EITHER), ("grandma", "inv-grand", FEMALE),
        ("siblings", "sibling", EITHER),
    ],
)  # fmt: skip
def test_words_for_relations(word, predicate, sign) -> None:
    assert RELATION_WORDS[word] == (PREDICATE_ID[predicate], sign)


def test_the_names_of_all_relations_mean_them() -> None:
    for relation, name in enumerate(RELATIONS):
        predicate, sign = RELATION_WORDS[name]
        assert predicate == PREDICATE_OF[relation]
        assert sign == (MALE, FEMALE)[GENDER_OF[relation]]


def test_special_tokens_are_those_of_the_known_words() -> None:
    found = special_tokens({"uncle": 7, "lamp": 8, "of": 9, ";": 10})
    assert found == {
        "relation_words": ((7, PREDICATE_ID["inv-un"], MALE),),
        "holder_words": ((), (9,)),
        "sentence_ends": (10,),
    }


@pytest.mark.parametrize("end", [".", "!", "?", ";", "\n", "?!", ".\n"])
def test_sentences_end(end: str) -> None:
    text = f"[Ann] has a son, [Bob]{end} [Bob] has a son, [Cy]"
    first, second = sentences(text)
    assert text[first[0][0] : first[-1][1]] == f"[Ann] has a son, [Bob]{end}"
    assert text[second[0][0] : second[-1][1]] == "[Bob] has a son, [Cy]"


def test_words_are_in_lower_case_without_names() -> None:
    assert words_of(["[Ann] HAS\na son."]) == ("has", "\n", "a", "son", ".")


@pytest.mark.parametrize(
    "text", ["father-in-law", "Father in law", "father in-law", "Father-in law", "a father-in-law"]
)
def test_a_relation_in_law_is_one_word(text: str) -> None:
    """Otherwise the reader takes "father" in it for a father."""
    assert words_of([text])[-1] == "father-in-law"
    assert RELATION_WORDS["father-in-law"] == (PREDICATE_ID["inv-in-law"], MALE)


def test_other_words_before_in_law_are_words_of_their_own() -> None:
    assert words_of(["her in laws"]) == ("her", "in", "laws")
    assert words_of(["the son in lawful marriage"])[1:3] == ("son", "in")
