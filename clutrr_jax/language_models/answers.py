"""Free text of a language model -> a relation, or None, by fixed rules.

{rules}

Exports to evaluation harnesses include copies of this file, `marked_text.py` and `statements.py`.
"""

import re
from collections.abc import Iterator, Sequence, Set
from itertools import accumulate, chain

from clutrr_jax.language_models.marked_text import (
    ANSWER,
    ANSWER_TAG,
    BOX,
    CLOSE,
    FIRST,
    HAS_WORD,
    RELATIVES,
    RESULT,
    RESULT_TAG,
    TAG,
    R,
    marked_text,
)
from clutrr_jax.language_models.statements import (
    ASKED,
    BUT,
    CONCEDES,
    CORRECTED,
    CUT_OFF,
    GUESS,
    HYPOTHETICAL,
    IF,
    IN_PASSING,
    NO_ANSWER,
    OF_OTHERS,
    OTHERS,
    QUESTION,
    mark_statements,
)

RULES = """\
1. Case, punctuation, spaces, Markdown, LaTeX, HTML and the kind of hyphen are ignored: "Mother in
   law." and "\\text{mother}\\_in\\_law" are mother-in-law.
2. A relation is recognized by its name as a word, also in the plural or possessive (sons, wife's,
   sons-in-law), as "in-law NAME", and as grandma, granny, gran, nana, grandpa, granddad, gramps,
   mom, mum, mommy, mama, dad, daddy, papa, hubby, sis, bro, auntie. Negated ones (not his son),
   questions, words without a gender (parent, sibling, ...) and French "son" are ignored.
3. Relatives outside the benchmark count as one more relation, which is never the answer: cousin,
   other NAME-in-law, and a name after step, half, great, grand, god, foster, ex, former, adoptive
   or "like a". So does a name that a full stop, comma or the like separates from such a word or
   from "in law".
4. Thoughts are dropped (<think>, [THINK], the channel "analysis", ...), and what stands before the
   last one. The text is not mapped if a thought does not end.
5. The text ends at a further example, a line that begins with "Story:", "Question 2:", "User:" or
   the like, if an answer stands before it; otherwise that prompt is skipped. A text that begins
   with such a line repeats its prompt: the last example in it counts. So does one with the
   question of the row after such a line: what follows the question counts.
6. If there are markers, the last one of the strongest kind that states a relation by rule 7 counts,
   whatever stands before it; if none does, only "therefore" and the like after them. Strongest are
   a line "Answer: ...", a heading "Answer", \\boxed{...}, <answer>, the key "answer" of JSON and
   "#### NAME"; then the same with relation, conclusion, result, solution, output, ...; a sentence
   "Answer: ..."; "the answer is NAME" in a sentence. If only a question or an opening ("The
   relationship is:") stands in the line, the lines after it are read. "Unknown", "not enough
   information", "sibling" and the like are an answer without a relation. Different lines
   "Relation: ..." are steps, if a conclusion follows them.
7. A relation is stated by the first of these that applies: a last line with nothing else; a name at
   the beginning, followed by the end of a sentence, a bracket, a dash or "because" and not by an
   alternative; what follows "therefore", "so", "this makes" or the like in the last sentence that
   names a relative; the only relation before "because", before a line "Explanation:", outside
   brackets or in all. The latter two must not be uncertain (could be, unclear) or contradict.
   Everything else is not mapped, for example "her mother's mother", "the child of her sister",
   "Bob is Ann's son. Cy is Bob's son.", a sentence cut off, or an answer corrected after "wait".
8. The relation is what the second person of the row's query, Cy, is to the first, Ann. What a text
   states of them by name, "Cy is Ann's aunt", counts if rule 7 finds nothing else. "Ann is his
   niece" is ignored, and what it states of other people of the story, "Bob is Ann's son", is never
   the answer. Without names ("her aunt") the relation counts, and with names of nobody in the
   story."""
__doc__ = __doc__.replace("{rules}", RULES)

_LEAD = rf"^(?:[^\w\n{RELATIVES}]|[\d_])*"  # start of a line: Markdown, numbers of items
_HEAD = re.compile(
    rf"(?m){_LEAD}(?:(?:the|next|new|another|given|original|here|here's|is|now) ){{0,3}}"
    r"(?:family |short )?(?:(story|passage|context|example|puzzle|input|prompt|scenario|task|test|"
    r"text|exercise|instruction|paragraph|narrative)|question|problem|q|user|human)"
    r"s?(?: ?[#(]?(?:\d+|two)\)?)?[*_`\])]*(?:(?: ?:|(?<=\]) )([^\n]*)|$)"
)
_FURTHER = rf"(?m){_LEAD}(?:(?:next|new|another) (?:story|question)|(?:story|question) ?#?[2-9])\b"


def _blocks(text: str) -> Iterator[str]:
    """Parts between the heads of examples, such as "Story:", without the story or question."""
    first, *parts = _HEAD.split(re.split(_FURTHER, text)[0])
    yield first
    for long, rest, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if OF_OTHERS.search(re.split(r"\bis\b", rest or "", maxsplit=1)[-1]) and "?" in rest:
            continue  # Question 1: What is Bob to Ann?
        begun, lines = bool(HAS_WORD.search(rest or "")), body.split("\n")[1:]
        for i, line in enumerate(lines):
            at_end = begun and not (long and line.strip())
            if at_end or _MARKERS[0].match(line) or _MARKERS[1].match(line):
                yield "\n".join(lines[i:])
                break
            begun |= bool(HAS_WORD.search(line))


_OPENING = r"(?:(?:so|therefore|thus|hence|ok|okay|finally|now|and|here is|here's)\W{1,3})?"
_TO_WHOM = r"(?: ?#?\d+)?(?: ?\([^()\n]{,40}\))?(?: (?:to|for|of|between)\b[^\n:.?]{,80}?)?(?: is)?"
_COLON = rf"""{_TO_WHOM}["'*_`)\] ]*(?:[:=|→>]|[-=]+>|\*\*|__| -+ )"""
_ALONE = rf"""["'*_`)\] .:#]*(?:$|(?={R}[^\w\n]*$))"""  # a heading, or "Answer aunt"
_OF_KIND = r"""(?P<tag>{})|(?:{})?(?P<key>["']{}["'] ?: ?)|{}{}{}(?P<line>{}|{})"""
_MARKERS = [
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rf"(?P<box>{BOX})|#### ?(?P<hashes>)(?=[^\w\n{RELATIVES}]*{R}[^\w\n{RELATIVES}]*$)|"
        + _OF_KIND.format(ANSWER_TAG, _LEAD, ANSWER, _LEAD, _OPENING, ANSWER, _COLON, _ALONE),
        _OF_KIND.format(RESULT_TAG, _LEAD, RESULT, _LEAD, _OPENING, RESULT, _COLON, _ALONE),
        rf"(?<=[.!?;)] )[*_`\"]{{0,4}}{_OPENING}{ANSWER}(?P<line>{_COLON})",
        rf"\banswer(?P<within>{_COLON}|(?: (?:to|for)\b[^\n:.?]{{0,60}}?)?\W{{0,4}}"
        r"\b(?:is|was|(?:would|must|should|has to|can only) be|becomes)\b)",
    )
]
# The value of a key: a list, a text in quotes, or anything to the next comma.
_VALUE = r"""(?s)\[[^\]]{0,300}\]|(["']).{0,300}?\1(?= ?(?:[,}\]\n]|$))|[^,}\n]{0,300}"""


def _after(block: str, marker: re.Match[str], end: int) -> str:
    """Text that a marker refers to, at most up to `end`, where the next marker begins."""
    kind, text = marker.lastgroup, block[marker.end() : end]
    line = text.partition("\n")[0]
    if kind == "box" and text[:1] == "{":
        depths = accumulate((char == "{") - (char == "}") for char in text)
        close = next((i for i, depth in enumerate(depths) if not depth), len(line))
        return text[:close]
    if kind == "tag" and CLOSE in text:
        return text[: text.index(CLOSE)]
    if kind == "key" and (value := re.match(_VALUE, text)):
        return value[0]
    said = _without_questions(line).rstrip(" *_`")
    goes_on = said.endswith(":") or CUT_OFF.search(said)  # The relation is\n\naunt
    if kind == "within" or (re.search(rf"[\w?.\"-]|{R}", said) and not goes_on):
        return line
    return text


# Words that may stand before an answer without making it a sentence about somebody else.
_FILLER = re.compile(
    r"(?:the|an?|his|her|their|its|my|your|it|it's|is|she|he|she's|he's|that|this|be|would|will|"
    r"must|most|likely|probably|clearly|simply|just|called|relation(?:ship)?|answer|final|also|"
    r"biological|maternal|paternal|older|elder|younger|twin|so|then|was|s|one|word|json|text)"
)
_OR = {
    "or", "and", "maybe", "possibly", "perhaps", "either", "alternatively", "also", "even",
    "though", "could", "may", "might", "as", "well",
}  # fmt: skip
_NEUTRAL = (
    r"\b(?:\w*(?:parent|child(?:ren)?)|sibling|spouse|partner|kid|friend|twin|relative|widow|"
    r"neighbou?r|colleague|side)s?\b"
)
# A sentence up to its question mark, or the end of a line that has none.
_QUESTION = re.compile(r"(?:^|(?<=[.!?:\n]))[^.!?:\n]*(?:\?|$)", re.MULTILINE)
_ASKS = re.compile(
    r"\A\W*(?:(?:so|and|then|but)\W{1,3})?(?:(?:what|how|who|which|why)\b|(?:is|are|was|does|do|"
    r"can|could|would|should)\b.*\?)|\b(?:what|how|who|which)\b.*\?"
)
_BECAUSE = (
    r"(?:[,:;]? ?\b(?:because|since|given|due to|based on|by virtue|as (?=[^\W_]+ (?:is|was)\b))|"
    r", as\b(?! well)|, ?(?:why|because|explanation|reason(?:ing)?|proof) ?:)"
)
_EXPLANATION = r"\n(?:[^\w\n]|[\d_])*(?:explanation|reason|proof|why|justification|because|steps\b)"
# After an answer: "of Ann", and the end of a line or sentence or an explanation.
_STOP = re.compile(
    r"""(?:'s)?["'*_`)}\]$~ ]*(?:(?:of|to|for) \[?[^\W_]+\]?(?!['\w])["'*_`)}\]$ ]*)?"""
    rf"(?:$|\((?! ?of )|[.!;#\[\n|<{{{CLOSE}{TAG}→]|-+>| -+ |{_BECAUSE})"
)
_CONCLUDES = re.compile(
    r"\b(?:therefore|thus|hence|consequently|ultimately|in conclusion|in summary|conclude that|"
    r"follows that|overall|(?:this|that|which) (?:means|implies)|meaning|implies|"
    r"relation(?:ship)?\b[^.;\n\"]{0,60} (?=is\b)|accordingly|in (?:other words|short)|"
    r"(?:(?:this|that|which) (?:makes|(?:would|must) make)|making) \[?\w+)\b|[∴⇒]|=>|"
    r"(?:^|[\n.] ?)(?:since|because|given that)\b[^.;\n]*,(?= [^,\n]*$)"
    r"|(?P<so>(?:^|[,;:.\n] ?|\band )[-*_•> ]*so\b(?! (?:far|that|much|many|called)\b))"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])[*_`\")]* +|\n+")
_ASIDE = re.compile(r"\((?! ?of )[^()\n]{0,300}\)")
_ALTERNATIVE = re.compile(
    r"\A\( ?(?:or|actually|alternatively|possibly|maybe|could)\b|\b(?:if|also)\b"
)
# Another relative: "R's own R", "R of Bob, who is Ann's R", "child of her R", "married to her R".
_ANY = rf"(?:{R}|{_NEUTRAL})"
_COMPOSED = re.compile(
    rf"""{_ANY}["*_`]* of \[?[^\W_]+\]?'s [^\W_]|"""
    rf"""{_ANY}["*_`]*'s?[ "*_`\[]+(?:[^\W_]+ )?["*_`\[]*{_ANY}|{_ANY}["*_`]* of (?:(?!,(?! who)|"""
    rf"""(?<!who )\b(?:is|was|and|or|so|as|because)\b)[^.;:!?\n{RELATIVES}]){{0,60}}?{_ANY}|"""
    rf"""\bmarrie[ds](?: [\w'\[\]]+){{0,3}} ["*_`]*{R}|{R}(?: is)? marrie[ds]"""
)
# Whose R, and who is an R: with "Bob is Ann's R. Cy is Bob's R." Cy is another relative of Ann.
_HOLDER = rf"\b(\w+)\]?(?:'s| has an?) {R}|{R} of \[?(\w+)"
_HELD = rf"(?<!of )\b(\w+)\]? is [^.;,\n{RELATIVES}]{{0,40}}{R}|{R},? (?:is |named )?\[?(\w+)"


def _without_questions(text: str) -> str:
    return _QUESTION.sub(lambda sentence: " " if _ASKS.search(sentence[0]) else sentence[0], text)


def _is_filler(text: str, also: Set[str] = frozenset()) -> bool:
    return all(word in also or _FILLER.fullmatch(word) for word in re.findall(r"[\w']+", text))


def _is_opening(text: str) -> bool:
    """Returns whether an answer may follow: after "She is [Ann]'s", but not after "Bob is the"."""
    return _is_filler(re.sub(rf"(?<![^\W_])(?!{_NEUTRAL}')\[?[^\W_]+\]?'(?:s\b)?", "", text))


def _only(line: str) -> str | None:
    """The relation in a line that states nothing else."""
    head, *rest = re.split(f"({R})", line)
    alone = len(rest) == 2 and re.fullmatch(r"(?:'s)?[^\w:]*", rest[1].rstrip(" *_`"))
    return rest[0] if alone and _is_opening(head) else None


def _short_answer(text: str) -> str | None:
    """The relation that a text begins with, if it goes on with an explanation or ends."""
    head, *rest = re.split(f"({R})", text, maxsplit=1)
    if not rest or not _is_opening(head) or not _STOP.match(rest[1]) or BUT.search(rest[1]):
        return None
    if re.fullmatch(r"\W*(?:or|and)\W*", rest[1]):
        return None  # cut off
    for tail in (rest[1], _ASIDE.sub(" ", rest[1])):  # son (or nephew), father (Bob) → uncle
        between, *other = re.split(f"({R})", tail, maxsplit=1)
        listed = other and other[0] != rest[0] and _is_filler(between, _OR)
        if listed and (set(between.split()) & _OR or not re.match(r"'| (?:of|to)\b", other[1])):
            return None
    return rest[0]


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


def _is_alternative(aside: str) -> bool:
    return _is_filler(aside, _OR) or bool(_ALTERNATIVE.search(aside))


def _certain(text: str) -> str | None:
    """The only relation of a text, in all, outside of brackets or before "because"."""
    guess = GUESS.search(text) and not _is_opening(re.split(R, text, maxsplit=1)[0])
    if guess or CUT_OFF.search(text) or IN_PASSING.search(text):
        return None
    if NO_ANSWER.search(CONCEDES.split(text)[-1]):
        return None
    without = _ASIDE.sub(lambda aside: aside[0] if _is_alternative(aside[0]) else " ", text)
    statement, *reasons = re.split(_BECAUSE, _SENTENCE_END.split(without.strip())[0], maxsplit=1)
    for part in (text, without, statement if reasons and _is_predicate(statement) else ""):
        if len(names := set(re.findall(R, part))) == 1 and not _is_composed(part):
            return None if OTHERS in names else names.pop()
    return None


def _asked(text: str) -> str | None:
    """The relation that a text states of the people of the query by name, if it states one and does
    not correct itself."""
    sentences = [part for part in _SENTENCE_END.split(_without_questions(text)) if ASKED in part]
    found = {name for part in sentences for name in re.findall(f"{ASKED}({R})", part)}
    doubts = (GUESS, NO_ANSWER, CUT_OFF, IF)
    doubt = any(pattern.search(part) for part in sentences for pattern in doubts)
    return found.pop() if len(found) == 1 and not doubt and not CORRECTED.search(text) else None


def _stated(text: str) -> str | None:
    """The relation that a text states, "" for an answer without one, None if it is unreadable."""
    text = _without_questions(text).lstrip(" *_`'\"")
    if not re.search(R, text) or NO_ANSWER.match(CONCEDES.split(text)[-1]):
        return "" if NO_ANSWER.search(text) or re.search(_NEUTRAL, text) else None
    if (brief := _brief(text)) is not None:
        return brief if _conclusion(text) in (None, brief) else ""
    before = re.split(_EXPLANATION, text)[0]
    only = _certain(before if re.search(R, before) else text)
    found = {_conclusion(text), only} - {None}
    if len(found) == 1:
        return found.pop()
    return "" if found or GUESS.search(text) or NO_ANSWER.search(text) else None


def to_relation(
    text: str, relations: tuple[str, ...], query: Sequence[str] = (), names: Sequence[str] = ()
) -> str | None:
    """Name of the relation that a text states by the rules above; None if it is not mapped.

    Args:
      text: the answer of a model.
      relations: names of the relations.
      query: names of the two people of the question; the relation is that of the second one to the
        first.
      names: all people of the story. Without `query` and `names` a relation counts whoever has it.
    """
    marked = mark_statements(marked_text(text, relations, [*query, *names]))
    before, *after = QUESTION.split(marked)
    if after and _HEAD.search(before):  # the prompt is repeated
        marked = after[-1]
    first, *others = _blocks(marked)
    possible: set[str] = set()
    # A text that begins with a head repeats the prompt, also its solved examples.
    for block in [first, *others] if HAS_WORD.search(first) else reversed(others):
        found, sure = _answer(block)
        possible |= set() if found is None else {found}
        if sure:
            break
    index = ord(possible.pop() or "?") - FIRST if len(possible) == 1 else -1
    return relations[index] if 0 <= index < len(relations) else None


def _marked(block: str, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], str | None]]:
    """Yields markers and the relations after them, see `_stated`, the last one first."""
    end = len(block)
    for marker in reversed(list(pattern.finditer(block))):
        within, text = marker.lastgroup == "within", _after(block, marker, end)
        end = marker.start()
        hypothetical = within and HYPOTHETICAL.search(block[max(end - 80, 0) : end])
        if not hypothetical and not OF_OTHERS.search(marker[0]):
            yield marker, _short_answer(text) if within else _stated(text)


def _answer(marked: str) -> tuple[str | None, bool]:
    """The answer of a text, see `_stated`, and whether a further example may not change it."""
    block, unreadable, step = marked.replace(ASKED, ""), None, None
    for rank, pattern in enumerate(_MARKERS):
        markers = _marked(block, pattern)
        for marker, found in markers:
            unreadable = unreadable or (None if marker.lastgroup == "within" else marker)
            if found is not None:
                if rank == 1 and {one for _, one in markers} - {None, "", found}:
                    # Several results are those of steps, if something else follows.
                    step = "" if marker.lastgroup == "key" else found
                    break
                corrected = CORRECTED.search(block, marker.end())
                return ("" if corrected and corrected[1] != found else found), True
    if unreadable:
        rest = _without_questions(block[unreadable.end() :])
        *_, last = ["", *filter(HAS_WORD.search, rest.splitlines()[1:])]
        return _conclusion(rest) or _only(last) or _asked(marked) or step, False
    found = _stated(block)
    if found is None:
        return _asked(marked), False
    return found, found == "" or bool(_brief(_without_questions(block)))
