"""Column "given" of the tables: what a model has besides the training stories and their answers."""

from collections.abc import Mapping
from typing import Any

# Given by a variant of a model, or by a baseline of this name.
BY_VARIANT = {"given rules": "rules", "stated facts": "stated facts"}


def given(settings: Mapping[str, Any], variant: str = "") -> str:
    """Returns what the settings of a model, and the name of its variant, say that it is given,
    joined by commas, or "nothing".

    The names of settings are those of `SETTINGS` in the files of the models, and "start" if the
    replicas began with the parameters of a trained model. A model of your own
    that has a setting of the same name is described alike.
    """
    has_reader = "reasoner" in settings  # its reader names the predicate and gender of a fact
    parts = {
        "another training": "start" in settings,
        "pretrained encoder": "folder" in settings,
        "predicates and genders": has_reader or settings.get("share_genders", False),
        "words for relations": settings.get("relation_word_prior", 0) > 0
        or settings.get("relation_word_penalty", 0) > 0,
        "rules": settings.get("reasoner") == "rules",
        "facts as labels": settings.get("gold", 0) > 0,
    }
    found = [part for part, is_given in parts.items() if is_given]
    found += [BY_VARIANT[part] for part in variant.split(", ") if part in BY_VARIANT]
    return ", ".join(dict.fromkeys(found)) or "nothing"
