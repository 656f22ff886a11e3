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
    templates: dict[tuple[int, tuple[int, ...]], tuple[str, ...]] = {}
    for relation, name in enumerate(RELATIONS):
        article = "an" if name[0] in "au" else "a"
        texts = tuple(text.format(relation=name, article=article) for text in _TEMPLATES)
        for gender in range(len(GENDERS)):
            templates[gender, (relation,)] = texts
    return templates
