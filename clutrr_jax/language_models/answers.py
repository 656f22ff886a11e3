"""Free text of a language model -> a relation, or None, by fixed rules.

{rules}

Exports to evaluation harnesses include copies of this file, `marked_text.py` and `statements.py`.
"""

import re
from collections.abc import Iterator, Sequence, Set
from itertools import chain

from clutrr_jax.language_models.marked_text import (
    CLOSE,
    FIRST,
    HAS_WORD,
    MARKERS,
    NAME,
    NO_MARKER,
    RELATIVES,
    TAG,
    R,
    examples,
    marked_text,
)
from clutrr_jax.language_models.statements import ASKED, OTHERS, mark_statements

RULES = """\
1. Case, accents, punctuation, spaces, Markdown, LaTeX, HTML and the kind of hyphen are ignored:
   "Mother in law." and "\\text{mother}\\_in\\_law" are mother-in-law.
2. A relation is recognized by its name as a word, also in the plural or possessive (sons, wife's),
   as "in-law NAME" or "adopted NAME", and as grandma, granny, gran, nana, grandpa, granddad,
   gramps, mom, mum, mommy, mama, dad, daddy, papa, hubby, sis, bro, auntie. Negated ones (not his
   son), questions, words without a gender (parent, sibling, ...) and French "son" are ignored.
3. Relatives outside the benchmark count as one more relation, which is never the answer: cousin,
   other NAME-in-law, a name after step, half, great, grand, god, foster, ex, former, adoptive or
   "like a", or before "by marriage". So does a name that a full stop, comma or the like separates
   from such a word or from "in law".
4. Thoughts are dropped (<think>, [THINK], the channel "analysis", ...), and what stands before the
   last one. The text is not mapped if a thought does not end.
5. The text ends at a further example, a line that begins with "Story:", "Question 2:", "User:" or
   the like, if an answer stands before it; otherwise that prompt is skipped. If a text begins with
   such a line, or has the question of the row after one, its last example or question counts.
6. If there are markers, the last one of the strongest kind that states a relation by rule 7 counts,
   whatever stands before it; if none does, only "therefore" and the like after them. Strongest are
   a line "Answer: ..." or "Correction: ...", a heading "Answer", \\boxed{...}, <answer>, the key
   "answer" of JSON and "#### NAME"; then the same with relation, conclusion, result, solution, ...;
   a sentence "Answer: ..."; "the answer is NAME" in a sentence. If only a question or an opening
   ("The relationship is:") stands in the line, the lines after it are read. "Unknown", "sibling"
   and the like are an answer without a relation, and so is one about other people ("Answer: Cy is
   Bob's uncle"), unless what follows states one. Lines "Relation: ..." of a proof are steps.
7. A relation is stated by the first of these that applies: a last line with nothing else; a name at
   the beginning, followed by the end of a sentence, a bracket, a dash or "because"; what follows
   "therefore", "so", "this makes" or the like in the last sentence that names a relative; the only
   relation before "because", before a line "Explanation:", outside brackets or in all. It must not
   be uncertain (could be), contradicted, one of several (mother or aunt, uncle or a friend) or
   conditional (if, unless, depending on). Everything else is not mapped, for example "her mother's
   mother", "the child of her sister", "her friend's uncle", "Bob is Ann's son. Cy is Bob's son.", a
   sentence cut off, or an answer corrected after "wait".
8. The relation is what the second person of the row's query, Cy, is to the first, Ann. What a text
   states of them by name ("Cy is Ann's aunt", "Cy -> Ann = aunt", a table row "Cy | aunt") counts
   if rule 7 finds nothing else. "Ann is his niece" is ignored, and what it states of other people
   of the story, "Bob is Ann's son", is never the answer. Without names ("her aunt") the relation
   counts, and with names of nobody in the story. Names count in any case if the text never has
   them as the story does."""
__doc__ = __doc__.replace("{rules}", RULES)

# What holds an answer back.
_NO_ANSWER = re.compile(
    r"\A\W*\?|\b(?:un(?:known|determin\w+|clear|specified|defined|certain|sure|related|able|likely|"
    r"answerable)|in(?:determin\w+|conclusive|sufficient)|impossible|ambiguous|no idea|none|null|"
    r"n/a|nothing|sorry|i doubt|(?:is|be|'s) (?:wrong|incorrect|false)|(?:need|without) more|"
    r"hard to|can(?:'t| ?not)|could(?:n't| not)|no (?:\w+ )?(?:answer|relation(?:ship)?|way|link|"
    r"mention|information|evidence|indication|proof|sign)|by no means|nobody|no one|it open|"
    r"(?<!of )(?<!matter )whether(?! or not\b[^,.;\n]*,)|never (?:say|state|mention)s?|"
    r"(?:not|isn't|wasn't) (?:\w+ly )?(?:enough|sufficient|possible|known|clear|sure|certain|given|"
    r"stated|said|specified|mentioned|provided|related|defined|able|listed|true|the case|"
    r"necessarily)|(?:do|does|did|would)(?:n't| not) (?:\w+ly )?(?:know|say|state|tell|specify|"
    r"mention|provide|think|believe|call|appear|have (?:enough|evidence)))\b"
)
# Doubts before these words do not count: "not stated, but Cy is her aunt".
_CONCEDES = re.compile(
    r"\b(?:but|however|(?:we|i) can (?:infer|conclude|deduce)|can be (?:inferred|deduced))\b|"
    r"(?:\A|[.;] )(?:although|though|while)\b[^,.;]*,"
)
_GUESS = re.compile(
    r"\b(?:(?:could|might|may|can(?! only))\b[^.;\n]{,30}? be(?:en)?|possible that|a chance|maybe|"
    r"perhaps|possibly|either(?! way| case)|assum(?:e|ing|ption)|suppos(?:e|ing))\b"
)
_WAIT = (
    r"\b(?:(?:but )?wait|actually|oops|sorry|hm+|no(?=,)|on (?:second|reflection)|(?:my )?mistake|"
    r"hold on|correct(?:ion|ed)|edit(?=:)|(?:i |my )?apolog\w+|i (?:made|meant?|was wrong)|"
    r"scratch that|or rather|let me (?:reconsider|correct)|the (?:correct )?answer should be|"
    r"(?:this|that)(?:'s| is) (?:not right|wrong|incorrect)|"
    r"(?:however|but)\b(?=[^.\n]* (?:woman|man|female|male|should be)))\b"
)
_BUT = re.compile(rf"{_WAIT}|\b(?:however|instead)\b")
_CORRECTED = re.compile(
    rf"(?m)(?:^|[.!?])\W*(?:{_WAIT}(?s:.*)|(?:or|alternatively|ah|(?:it )?(?:could|may|might)"
    rf"(?: also)? be)\b\W*(?:an? |his |her )?)({R})"
)
# An alternative or a condition: "uncle/father", "aunt or a friend", "aunt, if Bob is her son".
_CONDITION = (
    r"(?:(?<!even )(?<!matter )\bif(?! (?:we|you|one|i)\b)|\b(?:unless|depend(?:s|ing) on|assuming|"
    r"as long as|provided that|in(?: which)? case)\b)"
)
_OPEN = re.compile(
    rf"({R})[^\w\n.;:!?/]{{,5}}(?:(?:and ?)?/|or\b(?!,? (?:in other|rather|put|to put|to be|so)\b))"
    rf"(?!(?:\W|\b(?:maybe|possibly|perhaps|also|an?|the|his|her|their)\b)*\1)|"
    rf"\A[^{RELATIVES}]*\bor (?:an?|the|his|her|their|[^\W_]+'s) {R}|"
    rf"({R})[^.:\n]{{0,150}}\bor (?:an?|the|his|her|their|[^\W_]+'s) (?!\2|{OTHERS}){R}|"
    rf"{R}[^.:\n]{{0,150}}{_CONDITION}|{_CONDITION}[^.:\n]{{0,150}}{R}"
)
_CUT_OFF = re.compile(
    r"(?:\b(?:of|the|an?|and|or|is|to|be|as|with|in|by|from|his|her|their)|[^\W_]'s|"
    rf"\b(?:is|was)\b[^.;\n]{{0,60}}{R}'s)[ *\"']*$"
)
# What a marker refers to. The value of a key is a list, a text in quotes, or all to the next comma.
_VALUES = {
    "box": r"\{(?:[^{}\n]|\{(?:[^{}\n]|\{[^{}\n]*\})*\})*",
    "tag": rf"[^{CLOSE}]*(?={CLOSE})",
    "key": r"""(?s)\[[^\]]{0,300}\]|(["']).{0,300}?\1(?= ?(?:[,}\]\n]|$))|[^,}\n]{0,300}""",
}


def _after(block: str, marker: re.Match[str], end: int) -> str:
    """Text that a marker refers to, at most up to `end`, where the next marker begins."""
    kind, text = str(marker.lastgroup), block[marker.end() : end]
    if kind in _VALUES and (value := re.match(_VALUES[kind], text)):
        return value[0]
    line = text.partition("\n")[0]
    said = _without_questions(line).rstrip(" *")
    goes_on = said.endswith(":") or _CUT_OFF.search(said)  # The relation is\n\naunt
    if kind == "within" or (re.search(rf"[\w?.\"-]|{R}", said) and not goes_on):
        return line
    return text


# Words that may stand before an answer without making it a sentence about somebody else.
_FILLER = re.compile(
    r"(?:the|an?|his|her|their|its|my|your|it|it's|is|she|he|she's|he's|that|this|be|would|will|"
    r"must|most|likely|probably|clearly|simply|just|called|relation(?:ship)?|answer|final|also|"
    r"biological|adopted|maternal|paternal|older|elder|younger|twin|so|then|was|s|one|word|json|text)"
)
_OR = {"or", "and", "maybe", "possibly", "perhaps", "either", "alternatively", "actually", "also",
       "even", "though", "could", "may", "might", "as", "well"}  # fmt: skip
_NEUTRAL = (
    r"\b(?:\w*(?:parent|child(?:ren)?)|sibling|spouse|partner|kid|friend|twin|relative|widow|"
    r"married|neighbou?r|colleague|side)s?\b"
)
# A sentence up to its question mark, or the end of a line that has none.
_QUESTION = re.compile(r"(?:^|(?<=[.!?:\n]))[^.!?:\n]*(?:\?|$)", re.MULTILINE)
_ASKS = re.compile(rf"\A[^\w{RELATIVES}]*(?:(?:so|and|but)\W+)?(?:what|how|wh[oy]|which)\b|\?\Z")
_BECAUSE = (
    r"(?:[,:;]? ?\b(?:because|since|given|due to|based on|by virtue|(?<!long )as (?=[^\W_]+ (?:is|"
    r"was)\b))|, as\b(?! well)|, ?(?:why|because|explanation|reason(?:ing)?|proof) ?:)"
)
_EXPLANATION = r"\n(?:[^\w\n]|[\d_])*(?:explanation|reason|proof|why|justification|because|steps\b)"
# After an answer: "of Ann", and the end of a line or sentence or an explanation.
_STOP = re.compile(
    r"""(?:'s)?["'*)}\]$~ ]*(?:(?:of|to|for) [^\W_]+(?!['\w])["'*)}\]$ ]*)?"""
    rf"(?:$|\((?! ?of )|[.!;#\[\n|<{{{CLOSE}{TAG}→]|-+>| -+ |{_BECAUSE})"
)
_CONCLUDES = re.compile(
    r"\b(?:therefore|thus|hence|consequently|ultimately|in conclusion|in summary|conclude that|"
    r"follows that|overall|(?:this|that|which) (?:means|implies)|meaning|implies|"
    r"relation(?:ship)?\b[^.;\n\"]{0,60} (?=is\b)|accordingly|in (?:other words|short)|"
    r"(?:(?:this|that|which) (?:makes|(?:would|must) make)|making) \w+)\b|[∴⇒]|=>|"
    r"(?:^|[\n.] ?)(?:since|because|given that)\b[^.;\n]*,(?= [^,\n]*$)"
    r"|(?P<so>(?:^|[,;:.\n] ?|\band )[-*_•> ]*so\b(?! (?:far|that|much|many|called)\b))"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])[*\")]* +|\n+")
_ASIDE = re.compile(r"\((?! ?of )[^()\n]{0,300}\)")
# Another relative: "R's own R", "R of Bob, who is Ann's R", "child of her R", "married to her R",
# "her friend's R", "a friend of her R". Another subject than the answer: "asked her R".
_ANY = rf"(?:{R}|{_NEUTRAL})"
_COMPOSED = re.compile(
    rf"{_ANY} (?:of|to) (?:\w+'s \w|an? |some)|{_ANY}'s? +(?:\w+ )?{R}|{R}'s? (?!of\b|is\b|name\b)"
    rf"\w|{_ANY} of (?:(?!,(?! who)|(?<!who )\b(?:is|was|and|or|so|as|because)\b)[^.;:!?\n"
    rf"{RELATIVES}]){{,60}}?{_ANY}|\bmarrie[ds](?: [\w']+){{,3}} {R}|{R}(?: is)? marrie[ds]|"
    rf"\b(?:is|was) (?:an?|the) (?:\w+ )?(?!relation|role|name|\w+est\b)\w+ of (?:\w+'s|his|her) "
    rf"{R}|(?:'s|\b(?:his|her|their|an?)) (?:\w+'? )?\w+'s {R}|\b(?:(?:says|mention(?:s|ed)?|no)"
    r"(?: only)?|(?:about|with|through|way of|from|via|kn[eo]ws?|for|asked|after|met|visited|has|"
    rf"have|and(?= h))(?: only)? (?:an?|the|his|her|their|\w+'s)) \"?{R}"
)
# Whose R, and who is an R: with "Bob is Ann's R. Cy is Bob's R." Cy is another relative of Ann.
_HOLDER = rf"\b(\w+)(?:'s| has an?) {R}|{R} of (\w+)"
_HELD = rf"(?<!of )\b(\w+) is [^.;,\n{RELATIVES}]{{0,40}}{R}|{R},? (?:is |named )?(\w+)"


def _without_questions(text: str) -> str:
    return _QUESTION.sub(lambda sentence: " " if _ASKS.search(sentence[0]) else sentence[0], text)


def _is_open(text: str) -> bool:
    """Returns whether the first sentence is an alternative or has a condition."""
    statement = re.split(_BECAUSE, sentence := _SENTENCE_END.split(text.strip())[0])[0]
    return bool(_OPEN.search(statement if re.search(R, statement) else sentence))


def _is_filler(text: str, also: Set[str] = frozenset()) -> bool:
    return all(word in also or _FILLER.fullmatch(word) for word in re.findall(r"[\w']+", text))


def _is_opening(text: str) -> bool:
    """Returns whether an answer may follow: after "She is Ann's", not "Bob is" or "her dog's"."""
    whose = rf"(?<![^\W_])(?<!'s )(?<!her )(?<!his )(?!{_NEUTRAL}')[^\W_]+'(?:s\b)?"
    return _is_filler(re.sub(whose, "", text))


def _only(line: str) -> str | None:
    """The relation in a line that states nothing else."""
    head, *rest = re.split(f"({R})", line)
    alone = len(rest) == 2 and re.fullmatch(r"(?:'s)?[^\w:]*", rest[1])
    return rest[0] if alone and _is_opening(head) else None


def _short_answer(text: str) -> str | None:
    """The relation that a text begins with, if it goes on with an explanation or ends."""
    head, *rest = re.split(f"({R})", text, maxsplit=1)
    if not rest or not _is_opening(head) or not _STOP.match(rest[1]) or _BUT.search(rest[1]):
        return None
    for tail in (rest[1], _ASIDE.sub(" ", rest[1])):  # son (or nephew), father (Bob) → uncle
        between, *other = re.split(f"({R})", tail, maxsplit=1)
        listed = other and other[0] != rest[0] and _is_filler(between, _OR)
        if listed and (set(between.split()) & _OR or not re.match(r"'| (?:of|to)\b", other[1])):
            return None
    return None if _is_open("".join(rest)) else rest[0]


def _brief(text: str) -> str | None:
    """The relation that stands alone in the last line or at the beginning; "" if they differ."""
    lines = [line for line in text.splitlines() if HAS_WORD.search(line)]
    first, last = _short_answer(text), _only(lines[-1]) if lines[1:] else None
    return "" if last and (first or _only(lines[0])) not in (None, last) else last or first


def _is_predicate(text: str) -> bool:
    """Returns whether a text is like "Cy is her aunt" or "her aunt is Cy", not "asked her aunt"."""
    before, *after = re.split(R, text, maxsplit=1)
    *verb, said = re.split(r"\b(?:is|are|was|be|becomes?|as)\b|=", before)
    ends = after and (_STOP.match(after[0]) or re.match(r"\W*(?:is|was)\b", after[0]))
    return _is_opening(said) and bool(verb or ends)


def _conclusion(text: str) -> str | None:
    """The relation after "therefore" or the like, in the last sentence that names a relative."""
    sentences = [part for part in _SENTENCE_END.split(text) if HAS_WORD.search(part)] or [""]
    last = next((s for s in reversed(sentences) if re.search(R, s)), "")
    *_, word = [None, *_CONCLUDES.finditer(last)]
    needs_end = last != sentences[-1] or (word and word["so"] and word.start())
    if not word or (needs_end and not re.search(rf"[^\w\s,{RELATIVES}]\s*$", sentences[-1])):
        return None  # cut off after a step of a proof
    said = last[word.end() :]  # also "Cy her daughter" after "makes"
    return _certain(said) if _is_predicate(said) else None


def _is_composed(text: str) -> bool:
    """Returns whether a text states a relative of a relative, or the facts that lead to one."""
    whose, who = ({*chain(*re.findall(words, text))} - {""} for words in (_HOLDER, _HELD))
    return bool(whose & who) or any(re.search(R, part[0]) for part in _COMPOSED.finditer(text))


def _certain(text: str) -> str | None:
    """The only relation of a text, in all, outside of brackets or before "because"."""
    if any(map(_is_open, _SENTENCE_END.split(text))):
        return None
    guess = _GUESS.search(text) and not _is_opening(re.split(R, text, maxsplit=1)[0])
    if guess or _CUT_OFF.search(text) or _NO_ANSWER.search(_CONCEDES.split(text)[-1]):
        return None
    without = _ASIDE.sub(lambda aside: aside[0] if _is_filler(aside[0], _OR) else " ", text)
    statement, *reasons = re.split(_BECAUSE, _SENTENCE_END.split(without.strip())[0], maxsplit=1)
    for part in (text, without, statement if reasons and _is_predicate(statement) else ""):
        if len(names := set(re.findall(R, part))) == 1 and not _is_composed(part):
            return None if OTHERS in names else names.pop()
    return None


def _asked(text: str) -> str | None:
    """The relation that a text states of the people of the query by name, if it states one and does
    not correct itself."""
    sentences = _SENTENCE_END.split(_without_questions(text))
    found = {name for part in sentences for name in re.findall(f"{ASKED}({R})", part)}
    ours = [part for part in sentences if re.search(f"(?!{OTHERS}){R}", part)]
    doubt = any(_GUESS.search(part) or _NO_ANSWER.search(part) for part in ours)
    doubt |= any(_CUT_OFF.search(part) or _is_open(part) for part in ours if ASKED in part)
    return found.pop() if len(found) == 1 and not doubt and not _CORRECTED.search(text) else None


def _stated(text: str) -> str | None:
    """The relation that a text states, in all or of the query by name, "" for an answer without
    one, None if it is unreadable."""
    plain = _without_questions(text.replace(ASKED, "")).lstrip(" *'\"")
    doubt = bool(_NO_ANSWER.search(plain))
    if not re.search(R, plain) or _NO_ANSWER.match(_CONCEDES.split(plain)[-1]):
        found = "" if doubt or re.search(_NEUTRAL, plain) else None
    else:
        before = re.split(_EXPLANATION, plain)[0]
        if (said := _brief(plain)) is None:
            said = _certain(before if re.search(R, before) else plain)
        both = {said, _conclusion(plain)} - {None}
        if len(both - {""}) > 1:  # they contradict each other
            return ""
        doubt |= bool(both or _GUESS.search(plain))
        found = both.pop() if len(both) == 1 else "" if doubt else None
    named = _asked(text)
    return "" if found and named and found != named else found or named or found


def to_relation(
    text: str, relations: tuple[str, ...], query: Sequence[str] = (), names: Sequence[str] = (),
    strict: bool = False,
) -> str | None:  # fmt: skip
    """Name of the relation that a text states by the rules above; None if it is not mapped.

    Args:
      text: the answer of a model.
      relations: names of the relations.
      query: names of the two people of the question; the relation is that of the second one to the
        first.
      names: all people of the story. Without `query` and `names` a relation counts whoever has it.
      strict: whether it must follow a marker, or stand alone in the last line or at the beginning.
    """
    possible, sure = set[str](), False
    for block in examples(mark_statements(marked_text(text, relations, [*query, *names]))):
        found, sure = _answer(block)
        possible |= set() if found is None else {found}
        if sure:
            break
    known = len(possible) == 1 and (sure or not strict)
    index = ord(possible.pop() or "?") - FIRST if known else -1
    return relations[index] if 0 <= index < len(relations) else None


def _marked(block: str, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], str | None]]:
    """Yields markers and the relations after them, see `_stated`, the last one first."""
    end = len(block)
    for marker in reversed(list(pattern.finditer(block))):
        within, text = marker.lastgroup == "within", _after(block, marker, end)
        end = marker.start()
        if not NO_MARKER.search(marker[0]):
            found = _short_answer(text.replace(ASKED, "")) if within else _stated(text)
            said = _SENTENCE_END.split(text.strip())[0] if found is None else ""
            begins = rf"\W*(?:that|the relation|{NAME})" if within else ""
            others = OTHERS in said and re.match(begins, said)
            yield marker, OTHERS if others else found


def _answer(block: str) -> tuple[str | None, bool]:
    """The answer of a text, see `_stated`, and whether a further example may not change it."""
    unreadable = step = None
    for rank, pattern in enumerate(MARKERS):
        markers = _marked(block, pattern)
        for marker, found in markers:
            unreadable = unreadable or (None if marker.lastgroup == "within" else marker)
            if found == OTHERS:
                found, sure = _answer(block[marker.end() :])
                return found or "", sure or not found
            if found is not None:
                if rank == 1 and {one for _, one in markers} - {None, "", OTHERS, found}:
                    # Several results are those of steps, if something else follows.
                    step = "" if marker.lastgroup == "key" else found
                    break
                corrected = _CORRECTED.search(block, marker.end())
                return ("" if corrected and corrected[1] != found else found), True
    if unreadable:
        rest = _without_questions(block[unreadable.end() :].replace(ASKED, ""))
        *_, last = ["", *filter(HAS_WORD.search, rest.splitlines()[1:])]
        return _conclusion(rest) or _only(last) or _asked(block) or step, False
    found = _stated(block)
    return found, found == "" or bool(_brief(_without_questions(block.replace(ASKED, ""))))
