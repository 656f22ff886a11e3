"""Writes banks of sentences in wordings of its own, to test reading on them.

    python -m examples.other_wordings banks
    python launch.py --config=experiments/single.py --workdir=runs/familiar \
        --config.generate.bank=banks/familiar.json --config.generate.hold_out=clauses \
        --config.generate.train_rows=1250 --config.models=reader_prover --config.train.replicas=1

`familiar` and `only_familiar` use informal words for some or all relations, `arrows` has records
instead of sentences, `chatty` has longer sentences with pronouns and familiar words, and `german`
is in German.
"""

import argparse
from itertools import product
from pathlib import Path

from generator.paraphrases.frames import PRONOUNS
from generator.paraphrases.load import save_bank
from generator.relations.kinship import GENDER_OF, GENDERS, MALE, RELATIONS, inverse_relation
from generator.stories.text import Bank, ClauseKey

INFORMAL = {
    "father": ["dad", "pop"],
    "mother": ["mom", "mum"],
    "son": ["boy", "lad"],
    "daughter": ["girl", "lass"],
    "brother": ["bro", "twin brother"],
    "sister": ["sis", "twin sister"],
    "grandfather": ["grandpa", "grandad"],
    "grandmother": ["grandma", "granny"],
    "grandson": ["grandchild, a boy,"],
    "granddaughter": ["grandchild, a girl,"],
    "husband": ["hubby", "male spouse"],
    "wife": ["missus", "female spouse"],
    "aunt": ["auntie", "aunty"],
}
GERMAN = {
    "father": ["Vater"],
    "mother": ["Mutter"],
    "son": ["Sohn"],
    "daughter": ["Tochter"],
    "brother": ["Bruder"],
    "sister": ["Schwester"],
    "grandfather": ["Großvater"],
    "grandmother": ["Großmutter"],
    "grandson": ["Enkel"],
    "granddaughter": ["Enkelin"],
    "husband": ["Ehemann"],
    "wife": ["Ehefrau"],
    "uncle": ["Onkel"],
    "aunt": ["Tante"],
    "nephew": ["Neffe"],
    "niece": ["Nichte"],
    "father-in-law": ["Schwiegervater"],
    "mother-in-law": ["Schwiegermutter"],
    "son-in-law": ["Schwiegersohn"],
    "daughter-in-law": ["Schwiegertochter"],
    "brother-in-law": ["Schwager"],
    "sister-in-law": ["Schwägerin"],
}
# <relation> is the relation of {1} to {0}, <inverse> that of {0} to {1}; <his 0> and <he 1> are the
# pronouns of {0} and {1}.
SHORT = [
    "{0}'s <relation> is {1}.",
    "{1} is the <relation> of {0}.",
    "{0} has a <relation>, {1}.",
    "{0} visited <his 0> <relation> {1}.",
    "{1} is {0}'s <relation>.",
]
CHATTY = [
    "{0} went fishing with <his 0> <relation> {1} last weekend.",
    "{1} baked a cake yesterday. <His 1> <inverse> {0} ate most of it.",
    "{0} was tired. <He 0> asked <his 0> <relation>, {1}, for a lift.",
    "When {1} called, {0} was happy to hear from <his 0> <relation>.",
    "{0} and <his 0> <relation> {1} share a love of old films.",
    "{1} adores {0}; after all, <he 1> is <his 0> <relation>.",
    "Everyone knows {1} as the <relation> of {0}.",
    "{1} wrote {0} a letter and signed it: your loving <relation>.",
    "{0} calls {1} every Sunday, as a good <inverse> of {1} should, for <he 1> is a proud"
    " <relation>.",
    "{0} bought {1} a gift because <he 1> is such a wonderful <relation>.",
    "The <relation> of {0}, whose name is {1}, plays golf.",
    "At the party {0} introduced {1} as <his 0> <relation> to everyone.",
]
IN_GERMAN = [
    "{1} ist <relation> von {0}.",
    "<relation> von {0} ist {1}.",
    "{0} hat {1} als <relation>.",
    "Als <relation> hilft {1} gern {0}.",
    "{0} kennt als <inverse> von {1} alle Geschichten.",
]
NAMES = {name: [name] for name in RELATIONS}
ALSO_INFORMAL = {name: [name, *INFORMAL.get(name, [name])] for name in RELATIONS}
ONLY_INFORMAL = NAMES | INFORMAL
BANKS = {
    "familiar": (SHORT, ALSO_INFORMAL),
    "only_familiar": (SHORT, ONLY_INFORMAL),
    "arrows": (["{1} -> <relation> -> {0} ;"], NAMES),
    "chatty": (CHATTY, ALSO_INFORMAL),
    "german": (IN_GERMAN, GERMAN),
}


def templates(sentences: list[str], words: dict[str, list[str]]) -> dict[ClauseKey, tuple]:
    """Sentences for every single fact, by the gender of {0} and the relation of {1} to {0}."""
    found: dict[ClauseKey, tuple] = {}
    for gender, relation in product(range(len(GENDERS)), range(len(RELATIONS))):
        inverse = RELATIONS[inverse_relation(relation, gender)]
        texts = {
            sentence.replace("<relation>", word).replace("<inverse>", other)
            for sentence in sentences
            for word in words[RELATIONS[relation]]
            for other in words[inverse]
        }
        people = gender, int(GENDER_OF[relation])
        found[gender, (relation,)] = tuple(sorted(with_pronouns(text, people) for text in texts))
    return found


def with_pronouns(text: str, genders: tuple[int, int]) -> str:
    """Replaces <he 0>, <his 1> and the like."""
    for person, gender in enumerate(genders):
        for male, pronoun in zip(PRONOUNS[MALE], PRONOUNS[gender], strict=True):
            text = text.replace(f"<{male} {person}>", pronoun)
            text = text.replace(f"<{male.title()} {person}>", pronoun.title())
    return text


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, (sentences, words) in BANKS.items():
        save_bank(Bank(name, templates(sentences, words)), folder / f"{name}.json")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR", help="where to write the banks")
    main(parser.parse_args().folder)
