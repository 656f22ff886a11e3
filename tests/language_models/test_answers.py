"""From the text of a language model to a relation."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clutrr_jax.language_models.answers import to_relation
from generator.kinship import NUM_RELATIONS, RELATIONS

relations = st.integers(0, NUM_RELATIONS - 1)
# Text around an answer, without relatives or markers of an answer.
before_it = st.sampled_from(["", "**", '"', "\n", "Well: ", "I would say (", "her ", "Bob's "])
after_it = st.sampled_from(["", "**", '"', "\n", "  ", "!", ".", ")", " of Bob", ", I would say"])


def plural(name: str) -> str:
    """sons, sisters-in-law, wives."""
    word, *law = name.split("-", 1)
    return "-".join(["wives" if word == "wife" else word + "s", *law])


surfaces = st.tuples(
    st.sampled_from([str.lower, str.upper, str.title, str.capitalize]),
    st.sampled_from(
        ["-", " ", "_", "\N{NON-BREAKING HYPHEN}", "\N{EN DASH}", "\N{NO-BREAK SPACE}"]
    ),
    st.sampled_from([str, plural, lambda name: name + "'s", lambda name: name + "\u2019s"]),
)


@given(relations, surfaces, before_it, after_it)
def test_a_relation_is_recognized_in_every_form(relation, surface, before, after) -> None:
    case, hyphen, ending = surface
    text = case(ending(RELATIONS[relation]).replace("-", hyphen))
    name = RELATIONS[relation]
    assert to_relation(before + text + after, RELATIONS) == name
    for longer in (
        f"Let me think: uncle, niece.\nFinal answer: {text}\nSo: aunt",
        f"<think>son? wife?</think>\n\n{before}{text}",
        json.dumps({"answer": text}, ensure_ascii=False),
    ):
        assert to_relation(longer, RELATIONS) == name


@given(relations, relations)
def test_several_different_relations_are_not_mapped(one, other) -> None:
    text = f"{RELATIONS[one]}, or maybe her {RELATIONS[other]}"
    assert to_relation(text, RELATIONS) == (RELATIONS[one] if one == other else None)


@given(st.text(string.ascii_lowercase, max_size=3), relations)
def test_a_relation_within_a_word_is_ignored(letters, relation) -> None:
    name = RELATIONS[relation]
    for text in (f"x{letters}{name}", f"{name}x{letters}"):
        assert to_relation(text, RELATIONS) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Grandma", "grandmother"),
        ("He is her grandpa.", "grandfather"),
        ("grand daughter", "granddaughter"),
        ("Mom", "mother"),
        ("her dad's", "father"),
        ("auntie", "aunt"),
        ("in-law daughter", "daughter-in-law"),
        ("motherinlaw", "mother-in-law"),
        ("**Answer:**\n\n Nephew", "nephew"),
        ("Answer: **father**-in-law", "father-in-law"),
        ("Answer: _father_-in-law", "father-in-law"),
        ("Answer: `father`-in-law", "father-in-law"),
        ("her father`s", "father"),
        ("The answer is: wife. The answer is: husband.", "husband"),
        ("The father of her father is her grandfather.\nAnswer: grandfather", "grandfather"),
        ("Answer: son, the brother of his daughter", None),
        ("Answer: aunt\n\nStory: Bob is a brother of Cy.\nAnswer: uncle", "aunt"),
        ("Answer: aunt\n\nExplanation: the answer is based on the mother", "aunt"),
        ("**Answer**: aunt\n\nThe answer is explained above: brother", "aunt"),
        ("Answer: step by step. Bob is a brother, so the answer is aunt.", None),
        ("Answer: step by step.\nBob is a brother, so the answer is aunt.", "aunt"),
        ("Bob is a brother, so the answer is aunt.\nAnswer: see above", "aunt"),
        ("Bob is a brother, so the answer is aunt.\n\nFinal Answer:", "aunt"),
        ("Bob is a brother of Cy.\n\n**Final Answer**\n\naunt", "aunt"),
        ("Bob is a brother.\n### Answer\naunt\n", "aunt"),
        ("Bob is a brother. <answer>aunt</answer>", "aunt"),
        ("Bob is a brother.\n<answer>\naunt\n</answer>", "aunt"),
        (r"Bob is a brother. \boxed{\text{aunt}}", "aunt"),
        ("Bob is a brother. Answer\N{FULLWIDTH COLON}aunt", "aunt"),
        ("<think>son?</think>\n\naunt\n\nShe is a sister of the father.", "aunt"),
        ("</think>\n\naunt\n\nShe is a sister of the father.", "aunt"),  # template opens the tag
        ("aunt\n\nShe is a sister of the father.", None),
        ("The father said so. Answer: I do not know.", None),
        ("The father said so. Answer:", None),
        ("sibling", None),
        ("parent-in-law", None),
        ("cousin", None),
        ("the aunt of her cousin", None),
        ("stepmother", None),
        ("half-brother", None),
        ("great-grandmother", None),
        ("great-aunt", None),
        ("aunt-in-law", None),
        ("ex-wife", None),
        ("season", None),
        ("", None),
        ("3", None),
    ],
)
def test_the_stated_rules(text: str, expected: str | None) -> None:
    assert to_relation(text, RELATIONS) == expected
