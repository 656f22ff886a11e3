"""The banks of paraphrases that a data set can be written with."""

from pathlib import Path

from generator.config import Config
from generator.errors import InputError
from generator.files import read_json
from generator.kinship import GENDERS, RELATION_ID
from generator.paraphrases.templates import synthetic_templates
from generator.text import Bank, ClauseKey


def load_bank(config: Config) -> Bank:
    """The bank that the settings name.

    Raises:
      InputError: the file of a bank cannot be read.
    """
    if config.bank:
        return read_bank(Path(config.bank))
    if config.language == "synthetic":
        return Bank("synthetic", synthetic_templates())
    from generator.paraphrases import bank  # takes half a second

    return bank.bank()


def read_bank(path: Path) -> Bank:
    """Reads a bank from JSON: {"male:son-brother": ["[{0}] ... {1} ... {2} ...", ...], ...}.

    A clause is the gender of the first person and the relations from each person to the next. The
    clauses may also stand under the key "templates", beside others.

    Raises:
      InputError: there is no such file, or it does not hold a bank.
    """
    content = read_json(path)
    content = content.get("templates", content)
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected an object of clauses with their paraphrases")
    templates = {}
    for name, texts in content.items():
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise InputError(f'{path}: clause "{name}": expected a list of texts')
        templates[_clause(name, path)] = tuple(texts)
    return Bank(path.name, templates)


def _clause(name: str, path: Path) -> ClauseKey:
    gender, _, relations = name.partition(":")
    try:
        return GENDERS.index(gender), parse_clause(relations)
    except (ValueError, KeyError):
        raise InputError(
            f'{path}: clause "{name}": expected one such as male:son-brother'
        ) from None


def parse_clause(text: str) -> tuple[int, ...]:
    """The relations of a clause as in the column f_comb. Raises KeyError for unknown ones."""
    relations = []
    words = text.split("-")
    while words:
        # father-in-law is one relation of three words
        size = 3 if words[1:3] == ["in", "law"] else 1
        relations.append(RELATION_ID["-".join(words[:size])])
        words = words[size:]
    return tuple(relations)
