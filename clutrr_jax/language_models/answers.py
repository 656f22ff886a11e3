"""Free text of a language model -> a relation, or None, by fixed rules.

{rules}

Exports to evaluation harnesses include a copy of this file, so it imports nothing of this project.
"""

import re
from functools import cache

RULES = """\
1. Case, punctuation, spaces and the kind of hyphen are ignored: "Mother in law." is mother-in-law.
2. The text ends where a line begins with "Story:" (a further example), and begins after the last
   "</think>". If it contains "answer:", "answer =", "<answer>", "\\boxed{" or a line that is only
   "Answer", the first non-empty line after the last of them is used; if that names no relative, or
   there is none of them, the line after the last "answer is". Without any, the first non-empty line
   after "</think>" is used, or else the whole text.
3. A relation is recognized by its name as a word, also in the plural or possessive (sons, wife's,
   sons-in-law), as "in-law NAME", and as grandma, granny, gran, nana, grandpa, granddad, grandad,
   mom, mum, mommy, mummy, mama, dad, daddy, papa, hubby, sis, bro, auntie, aunty.
4. Relatives outside the benchmark count as one more relation, which is never the answer: cousin,
   any other NAME-in-law, and a name after step, half, great, god, foster or ex.
5. If the text contains exactly one relation, however often, it is the answer. Otherwise the text is
   not mapped.
6. Words without a gender (parent, sibling, spouse, child, ...) are ignored.
7. The relation is understood as what the second person of the row's query is to the first, however
   the sentence is phrased; negation is not understood."""
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
_HYPHENS = re.compile(r"[-_\u00ad\u2010-\u2015\u2212]")
_APOSTROPHES = re.compile(r"[\u2018\u2019\u02bc\u00b4]")
_MARKUP = re.compile("[*`]")  # bold and code in Markdown
_NEXT_EXAMPLE = re.compile(r"\n\s*story:")
_MARKERS = (
    re.compile(
        r"\banswer\W{0,4}(?:is\s{0,4})?[:=\uff1a]|<answer>|\\boxed\{"
        r"|^[^\w/\n]*(?:the |my )?(?:final )?answer[^\w\n]*$",
        re.MULTILINE,
    ),
    re.compile(r"\banswer\W{0,4}\bis\b"),
)
_BEFORE = r"(?P<before>(?:step|half|great|god|foster|ex) ?)?"
_LAW = r"in ?law"


def to_relation(text: str, relations: tuple[str, ...]) -> str | None:
    """Name of the relation that a text states by the rules above; None if it is not mapped."""
    _, thought, text = _APOSTROPHES.sub("'", text.casefold()).rpartition("</think>")
    text, found = _NEXT_EXAMPLE.split(text.lstrip(), maxsplit=1)[0], None
    for marker in _MARKERS:
        ends = [match.end() for match in marker.finditer(text)]
        if ends and not found:
            found = _relatives(_first_line(text[ends[-1] :]), relations)
    if found is None:
        found = _relatives(_first_line(text) if thought else text, relations)
    return found.pop() if len(found) == 1 and found <= set(relations) else None


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if re.search(r"\w", line)), "")


def _relatives(text: str, relations: tuple[str, ...]) -> set[str]:
    words, kin = _vocabulary(relations)
    text = re.sub(r"\s+", " ", _HYPHENS.sub(" ", _MARKUP.sub("", text)))
    return {_name(match, words) for match in kin.finditer(text)}


@cache
def _vocabulary(relations: tuple[str, ...]) -> tuple[dict[str, str], re.Pattern[str]]:
    """Word -> relation without in-law, and a pattern of one mention of a relative."""
    words = {name: name for name in relations if not name.endswith(_IN_LAW)}
    words |= {word: name for name, informal in _INFORMAL.items() for word in informal}
    # "grandmother" may be written as two words.
    words |= {w.replace("grand", "grand ", 1): n for w, n in words.items() if w[:5] == "grand"}
    words["cousin"] = "cousin"
    any_word = "|".join(sorted(words, key=len, reverse=True))
    kin = re.compile(
        rf"\b{_BEFORE}(?P<first>{_LAW} )?(?P<word>{any_word})"
        rf"(?:'?s'?)?(?P<last> ?{_LAW}(?:'?s'?)?)?(?!\w| ?{_LAW})"
    )
    return words, kin


def _name(match: re.Match[str], words: dict[str, str]) -> str:
    """Name of one mention: a relation, or a relative outside the benchmark."""
    in_law = _IN_LAW if match["first"] or match["last"] else ""
    return (match["before"] or "") + words[match["word"]] + in_law
