"""Plain templates, written for this project: the synthetic and the plain language.

The paper uses templates in the style of bABI (table 4); the synthetic language is similar. The
plain language is a test of reading: it also uses the inverse relation ("{0} is an uncle of {1}, who
is a woman" states a niece) and puts two facts into one sentence.
"""

import string

from generator.relations.kinship import (
    GENDER_OF,
    GENDERS,
    NUM_RELATIONS,
    RELATIONS,
    inverse_relation,
)
from generator.stories.text import ClauseKey

# $relation is the relation of {1} to {0}. With an article: $a_relation, $a_next of {2} to {1},
# $an_inverse of {0} to {1}. $person is "man" or "woman", by the gender of {1}.
_SYNTHETIC = (
    "{1} is the $relation of {0}.",
    "{0} has $a_relation called {1}.",
    "{0}'s $relation is {1}.",
    "The name of {0}'s $relation is {1}.",
    "{1} is {0}'s $relation.",
)
_PLAIN = (
    "{0} has $a_relation named {1}.",
    "{1} is $a_relation of {0}.",
    "{0} is $an_inverse of {1}, who is a $person.",
    "{1}, who is a $person, has $an_inverse named {0}.",
)
_PLAIN_OF_TWO_FACTS = (
    "{0} has $a_relation named {1}, and {1} has $a_next named {2}.",
    "{2} is $a_next of {1}, who is $a_relation of {0}.",
    "{1} is $a_relation of {0} and has $a_next named {2}.",
    "{0} is $an_inverse of {1}, a $person who has $a_next named {2}.",
)


def synthetic_templates() -> dict[ClauseKey, tuple[str, ...]]:
    """Returns the templates of the synthetic language."""
    return {
        (gender, (relation,)): _fill(_SYNTHETIC, gender, relation)
        for relation in range(NUM_RELATIONS)
        for gender in range(len(GENDERS))
    }


def plain_templates() -> dict[ClauseKey, tuple[str, ...]]:
    """Returns the templates of the plain language, for one fact and for two."""
    templates: dict[ClauseKey, tuple[str, ...]] = {}
    for gender in range(len(GENDERS)):
        for relation in range(NUM_RELATIONS):
            templates[gender, (relation,)] = _fill(_PLAIN, gender, relation)
            for following in range(NUM_RELATIONS):
                templates[gender, (relation, following)] = _fill(
                    _PLAIN_OF_TWO_FACTS, gender, relation, following
                )
    return templates


def _fill(
    texts: tuple[str, ...], gender: int, relation: int, following: int = 0
) -> tuple[str, ...]:
    """Replaces the words that start with $, for the gender of {0} and the relations of a walk."""
    inverse = RELATIONS[inverse_relation(relation, gender)]
    words = {
        "relation": RELATIONS[relation],
        "a_relation": _with_article(RELATIONS[relation]),
        "a_next": _with_article(RELATIONS[following]),
        "an_inverse": _with_article(inverse),
        "person": ("man", "woman")[GENDER_OF[relation]],
    }
    return tuple(string.Template(text).substitute(words) for text in texts)


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'au' else 'a'} {noun}"
