"""Plain one-sentence templates for single facts (the synthetic language; paper, table 4).

The paper uses templates in the style of bABI. These are similar, written for this project.
"""

from generator.kinship import GENDERS, RELATIONS

_TEMPLATES = (
    "{{1}} is the {relation} of {{0}}.",
    "{{0}} has {article} {relation} called {{1}}.",
    "{{0}}'s {relation} is {{1}}.",
    "The name of {{0}}'s {relation} is {{1}}.",
    "{{1}} is {{0}}'s {relation}.",
)


def synthetic_templates() -> dict[tuple[int, tuple[int, ...]], tuple[str, ...]]:
    """Returns the templates of a `Bank`: (gender of {0}, (relation,)) -> texts."""
    return {
        (gender, (relation,)): tuple(
            text.format(relation=name, article="an" if name[0] in "au" else "a")
            for text in _TEMPLATES
        )
        for relation, name in enumerate(RELATIONS)
        for gender in range(len(GENDERS))
    }
