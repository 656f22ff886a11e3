"""Free text of a language model -> a relation, or none, by rules that can be stated.

{rules}
"""

import re

from generator.kinship import RELATION_ID, RELATIONS

RULES = """\
1. Case, hyphens of any kind, spaces and punctuation do not matter: "Mother in law." is
   mother-in-law.
2. Where the text has "answer:", "answer is", "answer =" or "</think>", only the first line with
   text behind the last of them is read; otherwise all of it.
3. A relation is read where its name stands as a word, also in the plural or the possessive (sons,
   wife's, sons-in-law), as "in-law NAME", and as grandma, granny, gran, nana, grandpa, granddad,
   grandad, mom, mum, mommy, mummy, mama, dad, daddy, papa, hubby, sis, bro, auntie, aunty.
4. Kin that the benchmark does not know count as one more relation, which is no answer: cousin, any
   other NAME-in-law, and a name behind step, half, great, god, foster or ex.
5. If one relation is read, however often, it is the answer. If several are, or none, the text is
   not mapped: nothing is guessed.
6. Words without a gender (parent, sibling, spouse, child, ...) say less than a relation; they are
   passed over.
7. The relation is taken as what the second person of the row's query is to the first, whichever
   way the sentence puts it; negations are not understood."""
__doc__ = __doc__.replace("{rules}", RULES)

_INFORMAL = {
    "grandmother": ("grandma", "granny", "gran", "nana"),
    "grandfather": ("grandpa", "granddad", "grandad"),
    "mother": ("mom", "mum", "mommy", "mummy", "mama"),
    "father": ("dad", "daddy", "papa"),
    "husband": ("hubby",),
    "wife": ("wive",),  # wives
    "sister": ("sis",),
    "brother": ("bro",),
    "aunt": ("auntie", "aunty"),
}
_IN_LAW = "-in-law"
# Word -> relation without in-law. "grandmother" may be written in two words.
_WORDS = {name: name for name in RELATIONS if not name.endswith(_IN_LAW)}
_WORDS |= {word: name for name, words in _INFORMAL.items() for word in words}
_WORDS |= {w.replace("grand", "grand ", 1): n for w, n in _WORDS.items() if w.startswith("grand")}
_WORDS["cousin"] = "cousin"

_HYPHENS = re.compile(r"[-_\u00ad\u2010-\u2015\u2212]")
_APOSTROPHES = re.compile(r"[\u2018\u2019\u02bc\u00b4`]")
_MARKER = re.compile(r"</think>|\banswer\W{0,4}(?:\bis\b\s*:?|:|=)")
_BEFORE = r"(?P<before>(?:step|half|great|god|foster|ex) ?)?"
_LAW = r"in ?law"
_KIN = re.compile(
    rf"\b{_BEFORE}(?P<first>{_LAW} )?(?P<word>{'|'.join(sorted(_WORDS, key=len, reverse=True))})"
    rf"(?:'?s'?)?(?P<last> ?{_LAW}(?:'?s'?)?)?(?!\w| ?{_LAW})"
)


def to_relation(text: str) -> int | None:
    """The relation that a text states, by the rules above; None where it is not mapped."""
    text = _APOSTROPHES.sub("'", text.casefold())
    behind = text[max((m.end() for m in _MARKER.finditer(text)), default=0) :]
    if behind != text:
        behind = next((line for line in behind.splitlines() if re.search(r"\w", line)), "")
    behind = re.sub(r"\s+", " ", _HYPHENS.sub(" ", behind))
    found = {_kin(match) for match in _KIN.finditer(behind)}
    return RELATION_ID.get(found.pop()) if len(found) == 1 else None


def _kin(match: re.Match[str]) -> str:
    """The name of one mention: a relation's, or of other kin."""
    in_law = _IN_LAW if match["first"] or match["last"] else ""
    return (match["before"] or "") + _WORDS[match["word"]] + in_law
