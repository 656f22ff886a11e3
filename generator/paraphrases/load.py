"""Loading and saving of paraphrase banks."""

import json
import re
from pathlib import Path

from generator.errors import InputError
from generator.files import check_shape, read_json, write_text
from generator.paraphrases.templates import plain_templates, synthetic_templates
from generator.relations.kinship import GENDERS, RELATION_ID
from generator.stories.config import Config
from generator.stories.text import Bank, clause_name


def load_bank(config: Config) -> Bank:
    """Returns the bank that the settings select: a file, plain templates or the embedded bank."""
    if config.bank:
        return read_bank(Path(config.bank))
    templates = {"synthetic": synthetic_templates, "plain": plain_templates}
    if config.language in templates:
        return Bank(config.language, templates[config.language]())
    from generator.paraphrases import bank  # imported here because it takes half a second

    return bank.bank()


def read_bank(path: Path) -> Bank:
    """Reads a bank from JSON: {"male:son-brother": ["[{0}] ... {1} ... {2} ...", ...], ...}.

    A clause is the gender of the first person and the relations along the walk. The clauses may
    also be nested under the key "templates", next to other keys.
    """
    content = read_json(path)
    content = content.get("templates", content)
    try:
        check_shape(content, {"*": [str]}, "the bank")
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    templates = {}
    for name, texts in content.items():
        gender, _, relations = name.partition(":")
        try:
            key = GENDERS.index(gender), parse_clause(relations)
        except (ValueError, KeyError):
            expected = "expected a name such as male:son-brother"
            raise InputError(f'{path}: clause "{name}": {expected}') from None
        templates[key] = tuple(texts)
    return Bank(path.name, templates)


def save_bank(bank: Bank, path: Path) -> None:
    """Writes a bank for `read_bank`, atomically."""
    templates = {clause_name(key): texts for key, texts in sorted(bank.templates.items())}
    write_text(path, json.dumps({"name": bank.name, "templates": templates}, indent=1) + "\n")


def parse_clause(text: str) -> tuple[int, ...]:
    """Parses relations as in the column f_comb. Raises KeyError for unknown relations."""
    # "father-in-law" is one word.
    return tuple(RELATION_ID[word] for word in re.split("-(?!in-law|law)", text))
