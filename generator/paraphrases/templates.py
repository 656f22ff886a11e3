"""Plain one-sentence templates, three for each relation ("synthetic placeholders", paper table 4).

The paper's are of the bABI style; these are this project's own.
"""

from generator.kinship import GENDERS, RELATIONS

_PLAIN = (
    "{{1}} is the {relation} of {{0}}.",
    "{{0}} has a {relation} called {{1}}.",
    "{{0}}'s {relation} is {{1}}.",
    "The name of {{0}}'s {relation} is {{1}}.",
    "{{1}} is {{0}}'s {relation}.",
)


def synthetic_templates() -> dict[tuple[int, tuple[int, ...]], tuple[str, ...]]:
    """The templates of a `Bank`, for clauses of one fact: (gender of {0}, (relation,)) -> texts."""
    return {
        (gender, (relation,)): tuple(
            text.format(relation=name).replace("has a uncle", "has an uncle")
            .replace("has a aunt", "has an aunt") for text in _PLAIN
        )
        for gender in range(len(GENDERS))
        for relation, name in enumerate(RELATIONS)
    }  # fmt: skip
