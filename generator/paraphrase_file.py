"""A paraphrase bank in a file: `{"name": ..., "templates": {"male:son-brother": ["{0} ..."]}}`."""

import json
import os
from pathlib import Path
from typing import Any

from generator.errors import InputError
from generator.kinship import GENDERS, RELATION_ID
from generator.story import Bank, ClauseKey, clause_name


def save_bank(bank: Bank, path: Path) -> None:
    """Writes a bank, whole or not at all. Raises InputError where that is impossible."""
    templates = {clause_name(key): list(texts) for key, texts in sorted(bank.templates.items())}
    part = path.with_name(path.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as file:
            json.dump({"name": bank.name, "templates": templates}, file, indent=1)
            file.write("\n")
        os.replace(part, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def load_bank(path: Path) -> Bank:
    """Reads a bank that `save_bank` or a person wrote.

    Raises:
      InputError: no such file, no JSON of this form, an unknown relation, no templates at all, or
        placeholders other than {0} .. {k} in a template of k facts.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a JSON file ({error})") from None
    if not isinstance(content, dict) or not isinstance(content.get("templates"), dict):
        raise InputError(
            f'{path}: expected {{"name": ..., "templates": {{"male:son-brother": [...]}}}}'
        )
    templates = {
        _clause(name, path): _texts(name, texts, path)
        for name, texts in content["templates"].items()
    }
    return Bank(str(content.get("name", path.stem)), templates)


def _clause(name: str, path: Path) -> ClauseKey:
    gender, _, relations = name.partition(":")
    # "-" also stands within mother-in-law and its like.
    names = relations.replace("-in-law", "_in_law").split("-")
    try:
        return GENDERS.index(gender), tuple(RELATION_ID[n.replace("_", "-")] for n in names)
    except (ValueError, KeyError):
        raise InputError(
            f'{path}: "{name}" is no clause; expected a gender and relations such as '
            "male:son-brother"
        ) from None


def _texts(name: str, texts: Any, path: Path) -> tuple[str, ...]:
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{path}, clause {name}: expected a list of templates")
    return tuple(texts)
