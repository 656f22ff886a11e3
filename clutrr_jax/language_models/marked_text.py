"""Free text of a language model -> the text that `answers.py` reads: lower case, without thoughts,
Markdown and the like, in which one private character stands for every mention of a relative, and a
made-up word for every person of the story.

Exports to evaluation harnesses include a copy of this file, so it imports nothing of this project.
"""

import html
import re
from collections.abc import Sequence
from functools import partial
from unicodedata import normalize

# In the normal form every mention of a relative is one private character: the patterns of
# `answers.py` are short.
FIRST = 0xF0000  # relation i is the character FIRST + i; all other relatives share the next one
RELATIVES = "\U000f0000-\U000f0fff"
R = f"[{RELATIVES}]"
BOX, ANSWER_TAG, RESULT_TAG, CLOSE, TAG = "\ue000", "\ue001", "\ue002", "\ue003", "\ue004"
# The people of the query, and the others.
X, Y, Z = "xqx", "yqy", r"zqz\d+"

_KIND = (
    r"(?:(?:the|my|our|your|final|correct|corrected|revised|updated|new|actual|best|short|direct|"
    r"predicted)[ _-]?)*"
)
ANSWER = rf"{_KIND}answer"
RESULT = rf"{_KIND}(?:relation\w*|conclusion|result|solution|output|prediction|response|final)"
HAS_WORD = re.compile(rf"[^\W_]|{R}")

# Signs without a place in the normal form: those above, and those that NFKC would make letters.
_NO_SIGN = re.compile("(?s).*[\\w\ue000-\uf8ff\U000f0000-\U000fffff].*")
# Beginnings of words that are no commands of LaTeX, as in "step\\mother".
_KIN = r"(?i:step|half|gr|god|mo|fa|sis|son|brot|dau|wi|hus|aunt|unc|nie|nep|cou|(?:in\W*)?law)"
_CODES = re.compile(r"\\+(?:u\{?([0-9a-fA-F]{4})\}?|x([0-9a-fA-F]{2}))|%(?:20|2[dD]|5[fF])")
_BEFORE_NFKC = str.maketrans(dict.fromkeys("\u2018\u2019\u201b\u02bc\u00b4\u2032", "'"))
_CHANGES = [  # pattern and replacement, in this order
    (re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]|\\\\+[nrt](?![a-z])"), "\n"),
    (re.compile("[\u201c-\u201f\xab\xbb]"), '"'),
    (re.compile("[\u2010-\u2015\u2043\u2212]"), "-"),
    (re.compile("[\u00ad\u034f\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"), ""),
    (re.compile(r"\n\s*\n"), "\n\n"),
    (re.compile(r"\\+(?:boxed|fbox|framebox)\b\s*"), BOX),
    (re.compile(rf"\\+(?!{_KIN})[a-zA-Z]+\*?|\\[,;:! \\]"), " "),  # LaTeX
    (re.compile(r"[^\S\n]+|\u200b"), " "),
    (re.compile(r"\\"), ""),
    (re.compile(r"~~[^~\n]{1,200}~~"), " "),  # struck through
]


def _normal_form(text: str, people: Sequence[str]) -> str:
    """Lower-case text without LaTeX, HTML entities, signs that NFKC would make letters, and names
    of people, which are written as in the story."""
    text = html.unescape(html.unescape(text))
    text = _CODES.sub(lambda code: chr(int(code[1] or code[2] or "20", 16)), text)
    text = text.translate(_BEFORE_NFKC)
    text = re.sub(r"[^\x00-\x7f\w]", lambda s: _NO_SIGN.sub(" ", normalize("NFKC", s[0])), text)
    text = normalize("NFKC", text)
    for pattern, sign in _CHANGES:
        text = pattern.sub(sign, text)
    words = {normalize("NFKC", name): f"zqz{i}" for i, name in enumerate(people)}
    words |= dict(zip(map(partial(normalize, "NFKC"), people), (X, Y), strict=False))
    names = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    if names:
        text = re.sub(rf"(?<![^\W_])(?:{names})(?![^\W_])", lambda name: words[name[0]], text)
    return text.casefold()


_INFORMAL = {
    "grandma granny gran nana gramma": "grandmother",
    "grandpa grandad gramps": "grandfather",
    "grandaughter": "granddaughter",
    "mom mum mommy mummy mama momma": "mother",
    "dad daddy papa": "father",
    "hubby": "husband",
    "wive": "wife",
    "sis": "sister",
    "bro": "brother",
    "auntie aunty": "aunt",
    "neice": "niece",
    "cousin": "cousin",
}
# Words that make another relative of the next one, with anything but letters between them.
_BEFORE = (
    r"(?:(?:step|half|great|grand|god|foster|ex|former|adoptive|adopted|surrogate|honorary|"
    r"future|co(?=-)|would-be|soon-to-be|pseudo|quasi|prospective|divorced|bonus|"
    r"(?:non|not)[\W_]*biological|in[\W_]*laws?|laws?)"
    r"[\W_]*){0,5}"
)
# Also an "-in-law" that is cut off.
_AFTER = (
    r"(?:'?s)?[\W_]*(?:in[\W_]*law[^\W_]*|(?:(?:in|n|by|the|a)[\W_]+){0,2}laws?(?![^\W_])|"
    r"-(?:in?(?:[\W_]+(?:la?)?)?)?[\W_]*\Z)"
)
# After a relative: "father figure", "mother (step)"; and before one: "like an uncle".
_FIGURE = re.compile(
    r"\W?(?:figures?|like|to\Wbe)\b|[*_`\"' ]*[(\[](?:step|half|great|god|foster|ex|former|"
    r"adopt\w+)\b|,? by (?:adoption|marriage)\b|(?:'?s)? (?:day|tongue|nature)\b"
)
_LIKE = re.compile(
    r"\b(?:like|acts? as|practically|almost)(?: \w+ly)? (?:an?|her|his) ['\"*_`]{0,3}$"
)
# Signs that may stand between the words of one name; others may end a sentence.
_SOFT = r"(?:[^\w.,;:!?/|&+=\n]|_)*"
_IN_LAW = re.compile(rf"(?:'?s)?{_SOFT}in{_SOFT}laws?|in{_SOFT}law{_SOFT}")
_FOREIGN = re.compile(  # "son" is "his"
    r"\b(?:est|sont|une|que|ell[oa]s|hermanos|primos|s'agit|son (?:(?:grand|petit|beau)-)?"
    r"(?:père|mère|frère|fils|oncle|mari|neveu|cousin))\b"
)
# The part before a marker: "Go step by step. \\boxed{mother}".
_APART = re.compile(rf"(?s).*(?:[\s.,:;!?][\W_]*[{BOX}{ANSWER_TAG}{RESULT_TAG}]|####)[\W_]*")
# The end of the text before a relation that is negated: "is not Ann's".
_NEGATION = re.compile(
    r"(?:\b(?:not|nor|neither|never|no|no longer|rather than|instead of|cannot|unlike|hardly|"
    r"anything but|wrongly called)|n't)(?: (?:be|been|call|the|an?|his|her|their|my|[^\W_]+'s))* "
    rf"['\"*_`(\[{{ ${BOX}{ANSWER_TAG}{RESULT_TAG}]{{0,7}}$"
)


def _mark_relatives(text: str, relations: tuple[str, ...]) -> str:
    """Replaces every mention of a relative that is not negated by the character of its relation."""
    words = {name: name for name in relations if "-" not in name}
    words |= {word: name for informal, name in _INFORMAL.items() for word in informal.split()}
    ours = words.keys() - ({"son"} if _FOREIGN.search(text) else set())
    word = "|".join(sorted(ours, key=len, reverse=True))

    def mark(found: re.Match[str]) -> str:
        before, name, after = found["before"], words[found["word"]], found["after"] or ""
        apart = match[0] if (match := _APART.match(before)) else ""
        before = before.removeprefix(apart)
        if re.fullmatch(rf"grand{_SOFT}", before):
            name, before = "grand" + name, ""
        if _IN_LAW.fullmatch(before or after) and not (before and after):
            name, before, after = name + "-in-law", "", ""
        figure = _FIGURE.match(text[found.end() : found.end() + 25]) or _LIKE.search(
            text[max(found.start() - 40, 0) : found.start()]
        )
        if before or after or figure or name not in relations:
            name = ""
        index = relations.index(name) if name else len(relations)
        negated = not apart and _NEGATION.search(text[max(found.start() - 60, 0) : found.start()])
        return apart + ("" if negated else chr(FIRST + index))

    mention = rf"(?P<before>{_BEFORE})(?P<word>{word})s?(?P<after>{_AFTER})?"
    return re.sub(rf"(?<![^\W_]){mention}(?![^\W_])", mark, text)


_THOUGHT = (
    r"(?:seed:|antml:|ant)?(?:think(?:ing)?|thoughts?|reason(?:ing)?|analysis|reflection|"
    r"cot|scratch_?pad|chain[_-]of[_-]thought|inner_?monologue|rationale)"
)
_BEGIN = (
    rf"(?:<\|? ?{_THOUGHT}(?:\s[^<>]{{0,99}})?\|?>|\[think(?:ing)?\]|◁think▷|<\|begin_of_thought\|>"
    r"|<\|start_thinking\|>|<\|channel\|> ?(?:analysis|commentary)|<unused94>|\Aanalysis(?=[^\W_]))"
)
_END = (
    rf"(?:<\|? ?/ ?{_THOUGHT} ?\|?>|\[/think(?:ing)?\]|◁/think▷|<\|end_of_thought\|>|"
    r"<\|end_thinking\|>|<\|channel\|> ?final|<unused95>|assistantfinal)"
)
# Tokens of chat templates: the end of a turn begins a further example.
_TURN = r"<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|return|user)\|>|</s>|<eos>|<end_of_turn>"
_TAGS = [
    (re.compile(_TURN), "\nuser:\n"),
    (re.compile(r"<(s|del)>[^<\n]{0,200}</\1>"), " "),
    (re.compile(rf"[<\[]{ANSWER}(?: [^<>\n]*)?[>\]]"), ANSWER_TAG),
    (re.compile(rf"[<\[]{RESULT}(?: [^<>\n]*)?[>\]]"), RESULT_TAG),
    (re.compile(rf"[<\[]/(?:{ANSWER}|{RESULT})[>\]]"), CLOSE),
    (re.compile(r"</?(?:br|p|div|li|ul|ol|tr|td|th|table|hr|h\d|blockquote|pre)\b[^<>\n]*>"), "\n"),
    (re.compile(r"</?[a-z][\w:.-]*(?: [^<>\n]*)?/?>|<\|[^<>|\n]*\|>"), TAG),
]


def _without_thoughts(text: str) -> str:
    """The last part outside of thoughts that has words, "" if a thought does not end."""
    *_, end = [0, *(match.end() for match in re.finditer(_END, text))]
    if re.search(_BEGIN, text[end:]):
        return ""
    first, *parts = re.split(rf"(?s){_BEGIN}.*?{_END}", text[:end])
    begun, *ended = re.split(_END, first)  # by the prompt
    parts = [*(ended if ended else [begun]), *re.split(_END, "\n".join(parts)), text[end:]]
    return next((part for part in reversed(parts) if HAS_WORD.search(part)), "")


def marked_text(text: str, relations: tuple[str, ...], people: Sequence[str] = ()) -> str:
    """Returns a text in the normal form.

    Args:
      text: of a language model.
      relations: names of the relations.
      people: names of the people of the story, those of the query first.
    """
    text = _without_thoughts(_normal_form(text, people))
    for tag, sign in _TAGS:
        text = tag.sub(sign, text)
    return _mark_relatives(text, relations)
