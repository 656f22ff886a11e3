"""Free text of a language model -> a relation, or None, by fixed rules.

{rules}

Exports to evaluation harnesses include a copy of this file, so it imports nothing of this project.
"""

import html
import re
import unicodedata
from collections.abc import Iterator
from functools import cache

RULES = """\
1. Case, punctuation, Markdown, LaTeX, HTML and the kinds of spaces and hyphens are ignored:
   "Mother in law.", "**mother**-in-law" and "\\text{mother\\_in\\_law}" are mother-in-law.
2. A relation is recognized by its name as a word, also in the plural or possessive (sons, wife's,
   sons-in-law), as "in-law NAME", and as grandma, granny, gran, nana, grandpa, granddad, gramps, mom,
   mum, mama, dad, daddy, papa, hubby, sis, bro, auntie, neice. A negated one (not his son) is
   ignored, and so are questions and words without a gender (parent, sibling, spouse, child).
3. Relatives outside the benchmark count as one more relation, which is never the answer: cousin, any
   other NAME-in-law, and a name after step, half, great, god, foster, ex, former, adoptive or, if
   the benchmark has no such relation, grand. If a sign other than a space, hyphen, quote or bracket
   stands between the words ("father. In law"), neither of the two readings is taken.
4. Thoughts are dropped: the text begins after the last end of a thought (</think>, </thinking>,
   [/THINK], <|channel|>final, ...). A thought that does not end makes the text unmapped.
5. The text ends at a further example, a line that begins with "Story:", "Question 2:", "User:" and
   the like, if an answer stands before it. Otherwise that line is a restated prompt and ignored.
6. The answer is read after the last marker of the strongest kind that states exactly one relation:
   a. "Answer:" at the start of a line, a heading "Answer", \\boxed{}, <answer>, "answer" as a key
      of JSON, "#### NAME";
   b. "Relation:", "Conclusion:", "Result:" and the like, as a line, a tag or a key;
   c. "Answer:" at the start of a sentence;
   d. "the answer is NAME" within a sentence.
   What stands before such a marker does not matter. If only a question or an opening such as "The
   relationship is:" stands in the line of the marker, the lines after it are read. A marker with
   "unknown", "not enough information", "parent" and the like is an answer without a relation.
7. After a marker, and in a text without one, a relation is stated by, in this order: a last line
   with nothing else; a first line or an opening with nothing else, followed by the end of a
   sentence, a bracket or "because"; the last sentence, after "therefore", "so", "this makes" and the
   like; the words before "because" or before a line "Explanation:"; the whole, if it names exactly
   one relation. The last three must not be uncertain (could be, perhaps, cannot be determined).
   Where an unreadable marker precedes, only "therefore" and the like after it count.
8. In all other cases the text is not mapped.
9. The relation is understood as what the second person of the row's query is to the first, however
   the sentence is phrased."""
__doc__ = __doc__.replace("{rules}", RULES)

# --- Words for relatives ---------------------------------------------------------------------

_INFORMAL = {
    "grandmother": ("granny", "gran", "nana", "gramma"),
    "grandfather": ("gramps", "grampa", "grandad"),
    "granddaughter": ("grandaughter",),
    "mother": ("mom", "mum", "mommy", "mummy", "mama", "momma"),
    "father": ("dad", "daddy", "papa"),
    "husband": ("hubby",),
    "wife": ("wive",),  # wives
    "sister": ("sis",),
    "brother": ("bro",),
    "aunt": ("auntie", "aunty"),
    "niece": ("neice",),
}
_ONLY_GRAND = {"ma": "mother", "pa": "father"}  # grandma and grand-pa, but not ma'am
# Words that make another relative of the next one, also without a space (stepmother).
_JOINED = r"(?:step|half|great|grand|god|foster|ex)"
_BEFORE = {"step", "half", "great", "grand", "god", "foster", "ex", "former", "adoptive", "adopted",
           "surrogate", "honorary", "future"}  # fmt: skip
_WORD = re.compile(r"[^\W_]+")
# Between the words of one name these may end a sentence or separate alternatives.
_HARD = re.compile(r"[.,;:!?/|&+=\n]")
# The end of the text before a relation that is negated: "is not Ann's".
_NEGATION = re.compile(
    r"(?:\b(?:not|nor|neither|never|no longer|rather than|instead of|cannot|unlike)|n't)"
    r"(?: (?:be|been|the|a|an|his|her|their|my|[^\W_]+'s))* \W{0,4}$"
)


@cache
def _vocabulary(relations: tuple[str, ...]) -> tuple[dict[str, str], re.Pattern[str]]:
    """Word -> relation without grand and in-law, and a pattern of a word for a relative."""
    words = {name: name for name in relations if "-" not in name}
    words |= {word: name for name, informal in _INFORMAL.items() for word in informal}
    words |= {"cousin": "cousin"} | _ONLY_GRAND
    any_word = "|".join(sorted(words, key=len, reverse=True))
    return words, re.compile(rf"(?P<before>{_JOINED}*)(?P<word>{any_word})s?(?P<law>inlaws?)?")


def _mark_relatives(text: str, relations: tuple[str, ...]) -> str:
    """Replaces every mention of a relative by one character, see `_symbol`."""
    pattern = _vocabulary(relations)[1]
    words = list(_WORD.finditer(text))
    parts, end, used = [], 0, 0
    for i, word in enumerate(words):
        kin = pattern.fullmatch(word[0]) if i >= used else None
        mention = kin and _mention(text, words, i, used, kin, relations)
        if not mention:
            continue
        name, first, last = mention
        before = text[end : words[first].start()]
        negated = _NEGATION.search(before[-60:])
        parts += [before, "" if negated else _symbol(name, relations)]
        end, used = words[last].end(), last + 1
    return "".join([*parts, text[end:]])


def _mention(
    text: str, words: list[re.Match[str]], i: int, used: int, kin: re.Match[str],
    relations: tuple[str, ...],
) -> tuple[str, int, int] | None:  # fmt: skip
    """Name of the relative at word i with its first and last word; earlier words are `used`."""
    first, (last, law) = i, _in_law_after(words, i)
    while first > used and words[first - 1][0] in _BEFORE:
        first -= 1
    before = "".join([*(word[0] for word in words[first:i]), kin["before"]])
    if kin["word"] in _ONLY_GRAND and not before.endswith("grand"):
        return None
    previous = " ".join(word[0] for word in words[max(used, first - 2) : first])
    if previous in ("in law", "law in law") or previous.endswith("inlaw"):  # in-law daughter
        law, first = "in law", first - (2 if previous == "in law" else 1)
    elif previous.endswith("law"):  # common-law wife
        law = "law"
    certain = not _HARD.search(text[words[first].start() : words[last].end()])
    certain &= law in ("", "in law") and not _outside_after(words, last)
    in_law = "-in-law" if law or kin["law"] else ""
    base = _vocabulary(relations)[0][kin["word"]]
    return before + base + in_law if certain else "?", first, last


def _in_law_after(words: list[re.Match[str]], i: int) -> tuple[int, str]:
    """Last word of a name with "in law", and what follows the name; "n law" is not "in law"."""
    after = [word[0] for word in words[i + 1 : i + 5]]
    skipped = 1 if after[:1] == ["s"] else 0  # father's-in-law
    for n in range(skipped, min(len(after), skipped + 3)):
        in_law = after[n].startswith("law") and after[n - 1 : n] == ["in"]  # never "in lawx"
        if in_law or after[n].removesuffix("s") in ("law", "inlaw"):
            found = " ".join(after[skipped : n + 1]).removesuffix("s")
            return i + n + 1, "in law" if found == "inlaw" else found
        if len(after[n]) > 3:
            break
    return i, ""


def _outside_after(words: list[re.Match[str]], last: int) -> bool:
    after = [word[0] for word in words[last + 1 : last + 3]]
    return after[:1] in (["figure"], ["figures"], ["like"]) or after == ["to", "be"]


def _symbol(name: str, relations: tuple[str, ...]) -> str:
    """Private character of a relation; relatives outside the benchmark share one."""
    return chr(_FIRST + (relations.index(name) if name in relations else len(relations)))


# --- Normal form -----------------------------------------------------------------------------

_FIRST = 0xF0000
_RELATIVES = "\U000f0000-\U000f0fff"
_R = f"[{_RELATIVES}]"  # a relative
_BOX, _ANSWER_TAG, _RESULT_TAG, _CLOSE, _TAG = "\ue000", "\ue001", "\ue002", "\ue003", "\ue004"
_PRIVATE = re.compile("[\ue000-\uf8ff\U000f0000-\U000fffff]")
_APOSTROPHES = re.compile("[\u2018\u2019\u201b\u02bc\u00b4\u2032]")  # NFKC changes some of them
_QUOTES = re.compile("[\u201c-\u201f\u00ab\u00bb]")
_CODES = re.compile(r"\\+(?:u\{?([0-9a-fA-F]{4})\}?|x([0-9a-fA-F]{2}))")  # \u2011 of JSON
_PERCENT = re.compile(r"%(?:20|2[dD]|5[fF])")  # of addresses
_INVISIBLE = re.compile("[\u00ad\u034f\u180e\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_LINE_BREAK = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]|\\\\+[nrt](?![a-z])")
_BOXED = re.compile(r"\\+(?:boxed|fbox|framebox)\b\s*")
_COMMAND = re.compile(r"\\+[a-zA-Z]+\*?")  # LaTeX
_ESCAPED_SPACE = re.compile(r"\\[,;:! \\>]")
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~")
_FENCE = re.compile(r"^[^\S\n]*(?:```|~~~)[^\S\n]*\w*[^\S\n]*$", re.MULTILINE)
_SPACES = re.compile(r"[^\S\n]+|\u200b")


def _normal_form(text: str) -> str:
    """Lower-case text without the signs of LaTeX, HTML entities and typography."""
    text = html.unescape(html.unescape(text))
    text = _CODES.sub(lambda code: chr(int(code[1] or code[2], 16)), text)
    text = _PRIVATE.sub(" ", _PERCENT.sub(" ", text))
    text = _QUOTES.sub('"', _APOSTROPHES.sub("'", text))
    text = _LINE_BREAK.sub("\n", unicodedata.normalize("NFKC", text))
    text = _SPACES.sub(" ", _INVISIBLE.sub("", _FENCE.sub("", text.replace("\u200b", " "))))
    text = _COMMAND.sub(" ", _BOXED.sub(_BOX, text))
    text = _ESCAPED_SPACE.sub(" ", text).replace("\\", "")
    return _STRUCK.sub(" ", text).casefold()


# --- Thoughts, tags and further examples -------------------------------------------------------

_THOUGHT = (
    r"(?:seed:|antml:|ant)?(?:think(?:ing)?|thoughts?|reason(?:ing)?|analysis|reflection|"
    r"scratch_?pad|chain[_-]of[_-]thought|cot|inner_?monologue|rationale|deliberation)"
)
_THOUGHT_START = re.compile(
    rf"<\|? ?{_THOUGHT}(?: [^<>\n]*)?\|?>|\[thinking\]|\[think\]|◁think▷|<\|begin_of_thought\|>"
    r"|<\|start_thinking\|>|<\|channel\|> ?(?:analysis|commentary)|<unused94>|\Aanalysis(?=[^\W_])"
)
_THOUGHT_END = re.compile(
    rf"<\|? ?/ ?{_THOUGHT} ?\|?>|\[/thinking\]|\[/think\]|◁/think▷|<\|end_of_thought\|>"
    r"|<\|end_thinking\|>|<\|channel\|> ?final|<unused95>|assistantfinal"
)
_ANSWER_NAMES = r"(?:(?:final|correct|predicted|the|my)[ _-]?)*answer"
_RESULT_NAMES = (
    r"(?:final[ _-]?)?(?:relation(?:ship)?|conclusion|result|verdict|solution|output|response|"
    r"prediction|label)"
)
# Token of a chat template that ends the turn of the model.
_TURN = re.compile(
    r"<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|return|user)\|>|</s>|<eos>|<end_of_turn>"
)
_TAGS = [
    (re.compile(r"<(s|del|strike)>[^<\n]{0,200}</\1>"), " "),
    (re.compile(rf"[<\[]{_ANSWER_NAMES}(?: [^<>\n]*)?[>\]]"), _ANSWER_TAG),
    (re.compile(rf"[<\[]{_RESULT_NAMES}(?: [^<>\n]*)?[>\]]"), _RESULT_TAG),
    (re.compile(rf"[<\[]/(?:{_ANSWER_NAMES}|{_RESULT_NAMES})[>\]]"), _CLOSE),
    (re.compile(r"</?(?:br|p|div|li|ul|ol|tr|td|th|table|hr|h\d|blockquote|pre)\b[^<>\n]*>"), "\n"),
    (re.compile(r"</?[a-z][\w:.-]*(?: [^<>\n]*)?/?>|<\|[^<>|\n]*\|>"), _TAG),
]


def _with_ends(pattern: re.Pattern[str], text: str) -> list[tuple[re.Match[str], int]]:
    """All matches, each with the start of the next one or the end of the text."""
    matches = list(pattern.finditer(text))
    return list(zip(matches, [*(match.start() for match in matches[1:]), len(text)], strict=False))


def _without_thoughts(text: str) -> str:
    """Text after the last end of a thought, "" if there is none or a thought does not end."""
    *thoughts, text = _THOUGHT_END.split(text)
    while len(thoughts) > 1 and not _WORD.search(text):  # the end stands twice
        text = thoughts.pop()
    return "" if _THOUGHT_START.search(text) else text


_LEAD = rf"^(?:[^\w\n{_RELATIVES}]|[\d_])*"  # start of a line: Markdown, numbers of items
_HEAD = re.compile(
    _LEAD + r"(?:(?:the|next|new|another|given|original|here is the|now) ){0,2}"
    r"(?:(?P<long>story|passage|context|example|puzzle|input|prompt)|question|problem|q|user|human)"
    r"s?(?: ?#?\d+)?[*_`\])]*(?: ?:(?P<rest>[^\n]*)|$)",
    re.MULTILINE,
)  # fmt: skip


def _blocks(text: str) -> Iterator[str]:
    """Parts between the heads of examples, such as "Story:", without the story or question."""
    heads = _with_ends(_HEAD, text)
    yield text[: heads[0][0].start()] if heads else text
    for head, end in heads:
        begun = bool(_WORD.search(head["rest"] or ""))
        lines = text[head.end() : end].split("\n")[1:]
        for i, line in enumerate(lines):
            at_end = begun and not (head["long"] and line.strip())
            if at_end or _MARKERS[0].match(line) or _MARKERS[1].match(line):
                yield "\n".join(lines[i:])
                break
            begun |= bool(_WORD.search(line))


# --- Markers -----------------------------------------------------------------------------------

_OPENING = (
    r"(?:(?:so|therefore|thus|hence|ok|okay|finally|now|and)\W{1,3})?"
    r"(?:(?:the|my|our|your|here is the|here is my|here's the|here's my) )?"
    r"(?:(?:final|correct|best|short|direct|overall|predicted|right|concise|one-word) ){0,2}"
)
_TO_WHOM = (
    r"(?: ?#?\d+)?(?: ?\([^()\n]{0,40}\))?(?: (?:to|for|of|between|from)\b[^\n:.?]{0,80}?)?(?: is)?"
)
_SEPARATOR = r"""["'*_`)\] ]*(?:[:=|→>]|-+>|\*\*|__| [-–—]+ )"""
_ALONE = rf"""["'*_`)\] .:#]*(?:$|(?={_R}[^\w\n]*$))"""  # a heading, or "Answer aunt"
_MARKERS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rf"(?P<box>{_BOX})|(?P<tag>{_ANSWER_TAG})|(?:{_LEAD})?(?P<key>[\"']{_ANSWER_NAMES}[\"'] ?: ?)"
        rf"|(?P<hashes>####)|{_LEAD}{_OPENING}answer(?P<line>{_TO_WHOM}{_SEPARATOR}|{_ALONE})",
        rf"(?P<tag>{_RESULT_TAG})|(?:{_LEAD})?(?P<key>[\"']{_RESULT_NAMES}[\"'] ?: ?)"
        rf"|{_LEAD}{_OPENING}(?:{_RESULT_NAMES}|final)(?P<line>{_TO_WHOM}{_SEPARATOR}|{_ALONE})",
        rf"(?<=[.!?;)] )[*_`\"]{{0,4}}{_OPENING}answer(?P<line>{_TO_WHOM}{_SEPARATOR})",
        rf"\banswer(?P<within>{_TO_WHOM}{_SEPARATOR}|(?: (?:to|for)\b[^\n:.?]{{0,60}}?)?\W{{0,4}}"
        r"\b(?:is|was|(?:would|must|should|has to|can only) be|becomes)\b)",
    )
)
_VALUE = re.compile(
    r"""\[[^\]]{0,300}\]|(["']).{0,300}?\1(?= ?(?:[,}\]\n]|$))|[^,}\n]{0,300}""", re.DOTALL
)


def _after(block: str, marker: re.Match[str], end: int) -> str:
    """Text that a marker refers to, at most up to `end`, where the next marker begins."""
    start = marker.end()
    if marker.lastgroup == "box" and block[start : start + 1] == "{":
        return block[start : start + _closing_brace(block[start : start + 1000])]
    if marker.lastgroup == "tag" and (close := block.find(_CLOSE, start, end)) >= 0:
        return block[start:close]
    if marker.lastgroup == "key" and (value := _VALUE.match(block, start)):
        return value[0]
    line = block[start:end].partition("\n")[0]
    if marker.lastgroup == "hashes":  # also a heading of Markdown
        return line if _only(line) else ""
    if marker.lastgroup == "within":
        return line
    rest = _without_questions(line).rstrip(" *_`")
    goes_on = rest.endswith(":") or _CUT_OFF.search(rest)  # The relation is\n\naunt
    return line if re.search(rf"[\w?]|{_R}", rest) and not goes_on else block[start:end]


def _closing_brace(text: str) -> int:
    """Length of a text in braces, or of its line if there is no closing brace."""
    depth = 0
    for brace in re.finditer("[{}]", text):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.end()
    return len(text.partition("\n")[0])


# --- Statements --------------------------------------------------------------------------------

_HAS_WORD = re.compile(rf"[^\W_]|{_R}")
_WORDS = re.compile(r"[\w']+")
# Words that may stand before an answer without making it a sentence about somebody else.
_FILLER = set(
    "the a an his her their its my your it it's is she she's he he's they that this be would will "
    "must most likely probably definitely clearly simply just called relation relationship answer "
    "final biological maternal paternal older elder younger twin own also so therefore thus then "
    "was s one word exactly single json text".split()
)
_OR = {"or", "and", "maybe", "possibly", "perhaps", "either", "alternatively", "also", "even"}
_NO_ANSWER = re.compile(
    r"\A\W*\?|\b(?:un(?:known|determined|determinable|clear|specified|defined|certain|sure|related|able)|"
    r"in(?:determinate|determinable|conclusive|sufficient)|impossible|ambiguous|no idea|none|n/a|"
    r"null|nothing|can(?:'t| ?not)|could(?:n't| not)|hard to|sorry|"
    r"no (?:\w+ )?(?:answer|relation|relationship|information|way|connection|link)|"
    r"not (?:\w+ly )?(?:enough|sufficient|possible|known|clear|sure|certain|given|stated|said|told|"
    r"specified|mentioned|provided|related|defined|explicit|able|listed|in the|an option)|"
    r"(?:is|are|was)n't (?:\w+ly )?(?:enough|possible|clear|stated|given|specified|mentioned)|"
    r"(?:do|does|did)(?:n't| not) (?:\w+ly )?(?:know|say|state|tell|specify|mention|provide|give|"
    r"contain|have|appear|seem))\b"
)
_GUESS = re.compile(r"\b(?:could|might|may)(?: also| well)? be\b|\b(?:maybe|perhaps|possibly|either)\b")
_NEUTRAL = re.compile(
    r"\b(?:(?:grand|step|god)?(?:parent|child)|sibling|spouse|partner|kid|children|relative|friend|"
    r"neighbou?r|stranger|ancestor|descendant)s?\b"
)
# A question, also one without its question mark in a line of its own.
_SENTENCE = re.compile(r"(?:^|(?<=[.!?:\n]))[^.!?:\n]*(?:\?|$)", re.MULTILINE)
_ASKS = re.compile(
    r"\A[^\w]*(?:(?:so|and|then|but)\W{1,3})?(?:(?:what|how|who|which|why)\b|"
    r"(?:is|are|was|does|do|can|could|would|should)\b.*\?)|\b(?:what|how|who|which)\b.*\?"
)
_BECAUSE = re.compile(
    r"[,:;]? ?\b(?:because|since|given|due to|based on|by virtue|as (?=[^\W_]+ (?:is|was)\b))|, as\b"
    r"|, ?(?:why|because|explanation|reason(?:ing)?|proof) ?:"
)
_EXPLANATION = re.compile(
    r"\n(?:[^\w\n]|[\d_])*(?:explanations?|reason(?:s|ing)?|proof|why|justification|because|rationale|"
    r"derivation|steps|here's why|here is (?:why|how|the)|step-by-step|details|note)\b"
)
_STOP = re.compile(
    r"""(?:'s)?["'*_`)}\]$~ ]*(?:(?:of|to|for) \[?[^\W_]+\]?(?!['\w])["'*_`)}\]$ ]*)?"""
    rf"(?:$|[.!;#(\[\n|<{{{_CLOSE}{_TAG}→]|-+>| [-–—]+ |(?:{_BECAUSE.pattern}))"
)
_CORRECTION = re.compile(
    r"\b(?:wait|actually|correction|oops|hmm+|no,|on second thought|let me (?:re|correct)|mistake|"
    r"reconsider\w*|however|alternatively|instead)\b"
)
_CONCLUDES = re.compile(
    r"\b(?:therefore|thus|hence|consequently|accordingly|ultimately|in conclusion|to conclude|"
    r"in summary|conclude that|we conclude|follows that|it follows|overall|(?:this|that|which) "
    r"(?:means|implies)|meaning|implies|relation(?:ship)?\b[^.;\n\"]{0,60} (?=is\b)|"
    r"(?P<makes>(?:this|that|which) makes|making))\b"
    r"|(?P<so>(?:^|[,;:.\n] ?|\band )[*_ ]*so\b(?! (?:far|that|much|many|called)\b))"
)
_COPULA = re.compile(r"\b(?:is|are|was|be|becomes?|as)\b|=")
_SENTENCE_END = re.compile(r"(?<=[.!?])[*_`\")]* +|\n+")
_ENDED = re.compile(rf"[^\w\s,{_RELATIVES}]\s*$")
_CUT_OFF = re.compile(r"""\b(?:of|the|an?|and|or|is|to|be|as|with|his|her|their)[ *_`"']*$""")
_BUT = re.compile(r"\bbut\b")
_ASIDE = re.compile(r"\([^()\n]{0,300}\)")


def _without_questions(text: str) -> str:
    return _SENTENCE.sub(lambda sentence: " " if _ASKS.search(sentence[0]) else sentence[0], text)


def _relatives(text: str) -> set[str]:
    return set(re.findall(_R, text))


def _is_filler(text: str, also: set[str] = frozenset()) -> bool:
    words = _WORDS.findall(text)
    return all(word in _FILLER or word in also for word in words)


def _is_opening(text: str) -> bool:
    """Whether a text before a relation can be passed over: "She is [Ann]'s"."""
    return _is_filler(re.sub(r"\[?[^\W_]+\]?['\u2019](?:s\b)?", "", text))


def _only(line: str) -> str | None:
    """The relation in a line that states nothing else."""
    head, *rest = re.split(f"({_R})", line)
    tail = rest[1].rstrip(" *_`") if len(rest) == 2 else ":"
    alone = _is_opening(head) and re.fullmatch(r"(?:'s)?[^\w:]*", tail)
    return rest[0] if alone else None


def _short_answer(text: str) -> str | None:
    """The relation that a text begins with, if it goes on with an explanation or ends."""
    head, *rest = re.split(f"({_R})", text, maxsplit=1)
    if not rest or not _is_opening(head) or not _STOP.match(rest[1]) or _CORRECTION.search(rest[1]):
        return None
    between, *more = re.split(_R, rest[1], maxsplit=1)
    listed = more and rest[1][len(between)] != rest[0] and _is_filler(between, _OR)
    if listed and (set(between.split()) & _OR or not re.match(r"'| (?:of|to)\b", more[0])):
        return None  # son (or nephew)
    return rest[0]


def _sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE_END.split(text) if _HAS_WORD.search(part)] or [""]


def _conclusion(text: str) -> str | None:
    """The relation after "therefore" or the like, in the last sentence that names a relative."""
    sentences = _sentences(text)
    last = next((s for s in reversed(sentences) if _relatives(s)), "")
    words = list(_CONCLUDES.finditer(last))
    if not words:
        return None
    in_sentence = words[-1]["so"] and words[-1].start()
    if (in_sentence or last != sentences[-1]) and not _ENDED.search(sentences[-1]):
        return None  # cut off
    said = last[words[-1].end() :]
    if words[-1]["makes"]:  # This makes Cy her daughter
        said = re.sub(r"^ ?\[?[^\W_]+", "", said)
    return _certain(said) if _is_predicate(said) else None


def _is_predicate(text: str) -> bool:
    """Whether a text goes on like "Cy is her daughter", and not like "Ann asked her daughter"."""
    return _is_opening(_COPULA.split(re.split(_R, text, maxsplit=1)[0])[-1])


def _certain(text: str) -> str | None:
    """The only relation that a text names, by itself, or without what it says in brackets or gives
    as reasons."""
    guess = _GUESS.search(text) and not _is_opening(re.split(_R, text, maxsplit=1)[0])
    if guess or _CUT_OFF.search(text) or _NO_ANSWER.search(_BUT.split(text)[-1]):
        return None
    without = _ASIDE.sub(lambda aside: aside[0] if _is_filler(aside[0], _OR) else " ", text)
    statement, *reasons = _BECAUSE.split(_sentences(without)[0], maxsplit=1)
    for part in (text, without, statement if reasons and _is_predicate(statement) else ""):
        if len(names := _relatives(part)) == 1:
            return names.pop()
    return None


def _brief(text: str) -> str | None:
    """A statement without a sentence: a first or last line; "" if they differ."""
    lines = [line for line in text.splitlines() if _HAS_WORD.search(line)]
    first, last = _short_answer(text), _only(lines[-1]) if lines[1:] else None
    return "" if last and (first or _only(lines[0])) not in (None, last) else last or first


def _stated(text: str) -> str | None:
    """What a text states: a relation, "" for an answer without one, None if it is unreadable."""
    text = _without_questions(text)
    if not _relatives(text):
        return "" if _NO_ANSWER.search(text) or _NEUTRAL.search(text) else None
    if (brief := _brief(text)) is not None:
        return brief
    concluded = _conclusion(text)
    before = _EXPLANATION.split(text)[0]
    found = _certain(before if _relatives(before) else text)
    if concluded and found and concluded != found:
        return ""
    if concluded or found:
        return concluded or found
    return "" if _GUESS.search(text) or _NO_ANSWER.search(text) else None


# --- The answer --------------------------------------------------------------------------------


def to_relation(text: str, relations: tuple[str, ...]) -> str | None:
    """Name of the relation that a text states by the rules above; None if it is not mapped."""
    text = _without_thoughts(_normal_form(text))
    for tag, sign in [(_TURN, "\nuser:\n"), *_TAGS]:
        text = tag.sub(sign, text)
    possible: set[str] = set()
    for block in _blocks(_mark_relatives(text, relations)):
        found, sure = _answer(block)
        if found is not None:
            possible.add(found)
        if sure:
            break
    index = ord(possible.pop() or "?") - _FIRST if len(possible) == 1 else -1
    return relations[index] if 0 <= index < len(relations) else None


def _answer(block: str) -> tuple[str | None, bool]:
    """What a text states, see `_stated`, and whether a further example may not change it."""
    unreadable = None
    for pattern in _MARKERS:
        for marker, end in reversed(_with_ends(pattern, block)):
            text = _after(block, marker, end)
            within = marker.lastgroup == "within"
            found = _short_answer(text) if within else _stated(text)
            if found is not None:
                return found, True
            unreadable = unreadable or (None if within else marker)
    if unreadable:
        return _conclusion(_without_questions(block[unreadable.end() :])), False
    found = _stated(block)
    return found, found == "" or bool(_brief(_without_questions(block)))
