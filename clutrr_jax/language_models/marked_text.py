"""Free text of a language model -> the text that `answers.py` reads: lower case, without thoughts,
Markdown and the like, in which one private character stands for every mention of a relative, and a
made-up word for every person of the story; its examples and the markers of an answer.

Exports to evaluation harnesses include a copy of this file, so it imports nothing of this project.
"""

import html
import re
from collections.abc import Sequence
from unicodedata import normalize

# In the normal form every mention of a relative is one private character: the patterns of
# `answers.py` are short.
FIRST = 0xF0000  # relation i is the character FIRST + i; all other relatives share the next one
RELATIVES = "\U000f0000-\U000f0fff"
R = f"[{RELATIVES}]"
BOX, ANSWER_TAG, RESULT_TAG, CLOSE, TAG = "\ue000", "\ue001", "\ue002", "\ue003", "\ue004"
# The people of the query, and the others.
X, Y, Z = "xqx", "yqy", r"zqz\d+"
NAME = rf"(?:{X}|{Y}|{Z})"

_KIND = (
    r"(?:(?:the|my|our|your|final|correct|corrected|revised|updated|new|actual|best|short|direct|"
    r"predicted|conclusion and)[ _-]?)*"
)
ANSWER = rf"(?:{_KIND}answer|correction)"
RESULT = rf"{_KIND}(?:relation\w*|conclusion|result|solution|output|prediction|response|final)"
HAS_WORD = re.compile(rf"[^\W_]|{R}")

# Signs without a place in the normal form: those above, and those that NFKD would make letters.
_NO_SIGN = re.compile("(?s).*[\\w\ue000-\uf8ff\U000f0000-\U000fffff].*")
# Beginnings of words that are no commands of LaTeX, as in "step\\mother".
_KIN = r"(?i:step|half|gr|god|mo|fa|sis|son|brot|dau|wi|hus|aunt|unc|nie|nep|cou|(?:in\W*)?law)"
_CODES = re.compile(r"\\+(?:u\{?([0-9a-fA-F]{4})\}?|x([0-9a-fA-F]{2}))|%(?:20|2[dD]|5[fF])")
_BEFORE_NFKD = str.maketrans(dict.fromkeys("\u2018\u2019\u201b\u02bc\u00b4\u2032", "'"))
_CHANGES = [  # pattern and replacement, in this order
    (re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]|\\\\+[nrt](?![a-z])"), "\n"),
    (re.compile("[\u201c-\u201f\xab\xbb]"), '"'),
    (re.compile("[\u2010-\u2015\u2043\u2212]"), "-"),
    (re.compile(r"\n\s*\n"), "\n\n"),
    (re.compile(r"\\+(?:boxed|fbox|framebox)\b\s*"), BOX),
    (re.compile(r"\\+(?:long)?(?:rightarrow|to)\b|[⟶➔➜➝➞➡]"), "→"),
    (re.compile(rf"\\+(?!{_KIN})[a-zA-Z]+\*?|\\[,;:! \\]"), " "),  # LaTeX
    (re.compile(r"[^\S\n]+|\u200b"), " "),
    (
        re.compile("[\\\\\u00ad\u034f\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"),
        "",
    ),
    (re.compile(r"(?<![^\W_])[*_`]+(?=[^\W_])|(?<=[^\W_])[*_`]+(?![^\W_])"), ""),  # emphasis
    (re.compile(r"~~[^~\n]{1,200}~~"), " "),  # struck through
]
# After a name in another case that is also a verb: "it may be", but "may is her aunt".
_VERB = r"(?! (?!(?:is|was|has|had|and|or|to|who|as|must|would|should|his|her)\b)\w)"


def _plain(text: str) -> str:
    """Text without accents."""
    return re.sub("[\u0300-\u036f]", "", normalize("NFKD", text))


def _normal_form(text: str, people: Sequence[str]) -> str:
    """Lower-case text without accents, LaTeX, HTML entities, signs that NFKD would make letters,
    and names of people. A name counts in any case if the text never has it as the story writes it.
    """
    text = html.unescape(html.unescape(text))
    text = _CODES.sub(lambda code: chr(int(code[1] or code[2] or "20", 16)), text)
    text = text.translate(_BEFORE_NFKD)
    text = re.sub(r"[^\x00-\x7f\w]", lambda s: _NO_SIGN.sub(" ", normalize("NFKD", s[0])), text)
    text = _plain(text)
    for pattern, sign in _CHANGES:
        text = pattern.sub(sign, text)
    names = dict.fromkeys(map(_plain, people))
    words = zip(names, (X, Y, *map("zqz{}".format, range(len(names)))), strict=False)
    for name, word in sorted(words, key=lambda one: -len(one[0])):
        person = rf"(?<![^\W_]){re.escape(name)}(?![^\W_]|'t\b)"
        text, exact = re.subn(person, word, text)
        verb = _VERB if name.casefold() in ("may", "will") else ""
        text = re.sub(f"(?i){person}" + (r"(?='s| is\b)" if exact else verb), word, text)
    return text.casefold()


# Names of relations, and other words for each.
_INFORMAL = (
    "grandmother grandma granny gran nana gramma, grandfather grandpa grandad gramps, "
    "granddaughter grandaughter, mother mom mum mommy mummy mama momma, father dad daddy papa, "
    "husband hubby, wife wive, sister sis, brother bro, aunt auntie aunty, niece neice, cousin"
)
# Words that make another relative of the next one, with anything but letters between them, and not
# an end of a paragraph or a marker after a space: "Go step by step. \\boxed{mother}".
_BEFORE = (
    r"(?:(?:(?<!by )step|half|great|grand|god|foster|ex|former|adopt(?:ive|ed(?=\W+(?:grand)?(?:mo|"
    r"fa|dad)))|surrogate|honorary|future|co(?=-)|would-be|soon-to-be|pseudo|quasi|prospective|"
    r"divorced|bonus|(?:non|not)[\W_]*biological|in[\W_]*laws?|laws?)(?:(?!\n\n|(?<=[.!?])\n|####|"
    rf"(?<=[^\w{{}}$])[{BOX}{ANSWER_TAG}{RESULT_TAG}])[\W_])*){{0,5}}"
)
# Also an "-in-law" that is cut off.
_AFTER = (
    r"(?:'?s)?(?:[\W_]*(?:in[\W_]*law[^\W_]*|(?:(?:in|n|by|the|a)[\W_]+){0,2}laws?(?![^\W_]))|"
    r"[^\w|]*-(?:in?(?:[\W_]+(?:la?)?)?)?[\W_]*\Z)"
)
# After a relative: "father figure", "mother (step)"; and before one: "like an uncle".
_FIGURE = re.compile(
    r"\W?(?:figures?|like|to\Wbe)\b|[\"' ]*[(\[](?:step(?! by)|half|great|god|foster|ex|former|"
    r"adoptive)\b|(?: (?:of|to) [^\W_]+)?[^\w\n]*(?:by|through|via)(?: her| his)?[ -](?:adoption|"
    r"marriage)\b|(?:'?s)? (?:day|tongue|nature)\b"
)
_LIKE = re.compile(r"\b(?:like|acts? as|practically|almost)(?: \w+ly)? (?:an?|her|his) ['\"]?$")
# Signs that may stand between the words of one name; others may end a sentence.
_SOFT = r"(?:[^\w.,;:!?/|&+=\n]|_)*"
_IN_LAW = re.compile(rf"(?:'?s)?{_SOFT}in{_SOFT}laws?|in{_SOFT}law{_SOFT}")
_FOREIGN = re.compile(  # "son" is "his"
    r"\b(?:est|sont|une|que|ell[oa]s|hermanos|primos|s'agit|son (?:(?:grand|petit|beau)-)?"
    r"(?:pere|mere|frere|fils|oncle|mari|neveu|cousin))\b"
)
# The end of the text before a relation that is negated: "is not Ann's".
_NEGATION = re.compile(
    r"(?:\b(?:not|nor|neither|never|no|no longer|rather than|instead of|cannot|unlike|hardly|"
    r"anything but|wrongly called)|n't)(?: (?:be|been|call|the|an?|his|her|their|my|[^\W_]+'s))* "
    rf"['\"*_`(\[{{ ${BOX}{ANSWER_TAG}{RESULT_TAG}]{{0,7}}$"
)


def _mark_relatives(text: str, relations: tuple[str, ...]) -> str:
    """Replaces every mention of a relative that is not negated by the character of its relation."""
    words = {name: name for name in relations if "-" not in name}
    words |= {word: all.split()[0] for all in _INFORMAL.split(",") for word in all.split()}
    ours = words.keys() - ({"son"} if _FOREIGN.search(text) else set())
    word = "|".join(sorted(ours, key=len, reverse=True))

    def mark(found: re.Match[str]) -> str:
        before, name, after = found["before"], words[found["word"]], found["after"] or ""
        if re.fullmatch(rf"grand{_SOFT}", before):
            name, before = "grand" + name, ""
        if _IN_LAW.fullmatch(before or after) and not (before and after):
            name, before, after = name + "-in-law", "", ""
        start, end = found.span()
        figure = _FIGURE.match(text[end : end + 25]) or _LIKE.search(
            text[max(start - 40, 0) : start]
        )
        ours = name in relations and not (before or after or figure)
        index = relations.index(name) if ours else len(relations)
        negated = _NEGATION.search(text[max(start - 60, 0) : start])
        return "" if negated else chr(FIRST + index)

    mention = rf"(?P<before>{_BEFORE})(?P<word>{word})s?(?P<after>{_AFTER})?"
    return re.sub(rf"(?<![^\W_]){mention}(?![^\W_])", mark, text)


_THOUGHT = (
    r"(?:ant|inner|[\w-]{1,30}[:_-])?(?:think(?:ing)?|thoughts?|reason(?:ing)?|analysis|cot|"
    r"reflection|scratch_?pad|monologue|rationale)(?:[:_]\w{1,30})?"
)
BEGIN = (
    rf"(?:<\|? ?(?!(?:\w+_)?end){_THOUGHT}(?:\s[^<>]{{0,99}})?\|?>|\[(?:start )?think(?:ing)?\]|"
    r"◁think▷|<\|channel\|?> ?(?:analysis|commentary|thought)|<\|inner_prefix\|>|<unused94>|"
    r"\Aanalysis(?=[^\W_]))"
)
END = (
    rf"(?:<\|? ?(?:/[ |]?|(?=(?:\w+_)?end)){_THOUGHT} ?\|?>|\[(?:/|end )think(?:ing)?\]|◁/think▷|"
    r"<\|channel\|?> ?final|<channel\|>|<\|inner_suffix\|>|<\|content\|>|<unused95>|"
    r"\[begin final response\]|\.\.\.done thinking\.|assistantfinal)"
)
# Tokens of chat templates: the end of a turn begins a further example.
_TURN = (
    r"<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|return|user)\|>|</s>|<eos>|<end_of_turn>|"
    r"<turn\|>|\[end final response\]"
)
_TAGS = [
    (re.compile(_TURN), "\nuser:\n"),
    (re.compile(r"<(s|del)>[^<\n]{0,200}</\1>"), " "),
    (re.compile(rf"[<\[]{ANSWER}(?: [^<>\n]*)?[>\]]"), ANSWER_TAG),
    (re.compile(rf"[<\[]{RESULT}(?: [^<>\n]*)?[>\]]"), RESULT_TAG),
    (re.compile(rf"[<\[]/(?:{ANSWER}|{RESULT})[>\]]"), CLOSE),
    (re.compile(r"(?:</?br\b[^<>\n]*>[ \n]*)+"), "\n"),  # several end no paragraph
    (re.compile(r"</?(?:p|div|li|ul|ol|tr|td|th|table|hr|h\d|blockquote|pre)\b[^<>\n]*>"), "\n"),
    (re.compile(r"</?[a-z][\w:.-]*(?: [^<>\n]*)?/?>|<\|[^<>|\n]*\|>"), TAG),
]


def _without_thoughts(text: str) -> str:
    """The last part outside of thoughts that has words, "" if a thought does not end."""
    *_, end = [0, *(match.end() for match in re.finditer(END, text))]
    if re.search(BEGIN, text[end:]):
        return ""
    first, *parts = re.split(rf"(?s){BEGIN}.*?{END}", text[:end])
    begun, *ended = re.split(END, first)  # by the prompt
    parts = [*(ended if ended else [begun]), *re.split(END, "\n".join(parts)), text[end:]]
    return next((part for part in reversed(parts) if HAS_WORD.search(part)), "")


def marked_text(text: str, relations: tuple[str, ...], people: Sequence[str] = ()) -> str:
    """Returns a text in the normal form; `people` are those of the story, of the query first."""
    text = _without_thoughts(_normal_form(text, people))
    for tag, sign in _TAGS:
        text = tag.sub(sign, text)
    text = re.sub(r"\[(\w+)\]", r"\1", text)  # names in brackets, as in the data
    return _mark_relatives(text, relations)


_QUESTION = re.compile(rf"what is {Y} to {X} ?\?")  # of the prompt
# Markers of other people: "Relationship between Ann and Bob: ...", "Answer (Ann to Cy): ...".
_OF_OTHERS = rf"\b{Z}|\b{X} to {Y}"
_IF = r"(?:if|might|may|could|wrong|incorrect)\b"  # before "the answer is ..." that is none
NO_MARKER = re.compile(rf"{_OF_OTHERS}|\A{_IF}")
_LEAD = rf"^(?:[^\w\n{RELATIVES}]|[\d_])*"  # start of a line: Markdown, numbers of items
_HEAD = re.compile(
    rf"(?m){_LEAD}(?:(?:the|next|new|another|given|original|here|here's|is|now) ){{0,3}}"
    r"(?:family |short )?(?:(story|passage|context|example|puzzle|input|prompt|scenario|task|test|"
    r"text|exercise|instruction|paragraph|narrative)|question|problem|q|user|human)"
    r"s?(?: ?[#(]?(?:\d+|two)\)?)?[*_`\])]*(?:(?: ?:|(?<=\]) )([^\n]*)|$)"
)
_FURTHER = rf"(?m){_LEAD}(?:(?:next|new|another) (?:story|question)|(?:story|question) ?#?[2-9])\b"
_OPENING = r"(?:(?:so|therefore|thus|hence|ok|okay|finally|now|and|here is|here's)\W{1,3})?"
_TO_WHOM = r"(?: ?#?\d+)?(?: ?\([^()\n]{,40}\))?(?: (?:to|for|of|between)\b[^\n:.?]{,80}?)?(?: is)?"
_COLON = rf"""{_TO_WHOM}["'*)\] ]*(?:[:=|→>]|[-=]+>| -+ )"""
_ALONE = rf"""["'*)\] .:#]*(?:$|(?={R}[^\w\n]*$))"""  # a heading, or "Answer aunt"
_OF_KIND = r"""(?P<tag>{})|(?:{})?(?P<key>["']{}["'] ?: ?)|{}{}{}(?P<line>{}|{})"""
MARKERS = [
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rf"(?P<box>{BOX})|#### ?(?P<hashes>)(?=[^\w\n{RELATIVES}]*{R}[^\w\n{RELATIVES}]*$|"
        rf"{NAME}\b.*\Z)|"
        + _OF_KIND.format(ANSWER_TAG, _LEAD, ANSWER, _LEAD, _OPENING, ANSWER, _COLON, _ALONE),
        _OF_KIND.format(RESULT_TAG, _LEAD, RESULT, _LEAD, _OPENING, RESULT, _COLON, _ALONE),
        rf"(?<=[.!?;)] )[*_`\"]{{0,4}}{_OPENING}{ANSWER}(?P<line>{_COLON})",
        rf"(?:\b{_IF}[^.!?\n]{{,60}})?\banswer(?P<within>{_COLON}|(?: (?:to|for)\b[^\n:.?]{{,60}}"
        r"?)?\W{,4}\b(?:is|was|(?:would|must|should|has to|can only) be|becomes)\b)",
    )
]


def examples(text: str) -> list[str]:
    """Parts of a marked text between heads such as "Story:", without the story or question, in the
    order in which they may state the answer."""
    before, *after = _QUESTION.split(text)
    repeated = after[-1] if after and _HEAD.search(before) else text
    first, *parts = _HEAD.split(re.split(_FURTHER, repeated)[0])
    others = []
    for long, rest, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if re.search(_OF_OTHERS, re.split(r"\bis\b", rest or "", maxsplit=1)[-1]) and "?" in rest:
            continue  # Question 1: What is Bob to Ann?
        begun, lines = bool(HAS_WORD.search(rest or "")), body.split("\n")[1:]
        for i, line in enumerate(lines):
            at_end = begun and not (long and line.strip())
            if at_end or MARKERS[0].match(line) or MARKERS[1].match(line):
                others.append("\n".join(lines[i:]))
                break
            begun |= bool(HAS_WORD.search(line))
    # A text that begins with a head repeats the prompt, also its solved examples.
    return [first, *others] if HAS_WORD.search(first) else others[::-1]
