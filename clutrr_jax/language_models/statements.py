"""Whose relations a text states, those of the query or of other people, and what holds them back.

A text is in the normal form of `marked_text`. Exports to evaluation harnesses include a copy.
"""

import re

from clutrr_jax.language_models.marked_text import RELATIVES, R, X, Y, Z

ASKED = "\ue005"  # before a relation that is stated of the query, with both names
OTHERS = "\U000f0fff"  # in place of a relation of other people

# Patterns of what holds an answer back.

NO_ANSWER = re.compile(
    r"\A\W*\?|\b(?:un(?:known|determin\w+|clear|specified|defined|certain|sure|related|able|likely|"
    r"answerable)|in(?:determin\w+|conclusive|sufficient)|impossible|ambiguous|no idea|none|null|"
    r"n/a|nothing|sorry|i doubt|(?:is|be|'s) (?:wrong|incorrect|false)|(?:need|without) more|"
    r"hard to|can(?:'t| ?not)|could(?:n't| not)|no (?:\w+ )?(?:answer|relation(?:ship)?|way|link|"
    r"mention|information|evidence|indication|proof|sign)|whether|by no means|nobody|no one|"
    r"it open|never (?:say|state|mention)s?|"
    r"(?:not|isn't|wasn't) (?:\w+ly )?(?:enough|sufficient|possible|known|clear|sure|certain|given|"
    r"stated|said|specified|mentioned|provided|related|defined|able|listed|true|the case|"
    r"necessarily)|"
    r"(?:do|does|did|would)(?:n't| not) (?:\w+ly )?(?:know|say|state|tell|specify|mention|provide|"
    r"think|believe|call|appear|have (?:enough|evidence)))\b"
)
# Doubts before these words do not count: "not stated, but Cy is her aunt".
CONCEDES = re.compile(
    r"\b(?:but|however|(?:we|i) can (?:infer|conclude|deduce)|can be (?:inferred|deduced))\b|"
    r"(?:\A|[.;] )(?:although|though|while)\b[^,.;]*,"
)
GUESS = re.compile(
    r"\b(?:(?:could|might|may|can(?! only))\b[^.;\n]{0,30}? be(?:en)?|possible that|a chance|maybe|"
    r"perhaps|possibly|either|assum(?:e|ing)|suppos(?:e|ing)|if\b[^.;\n]{0,60}\bwere)\b"
)
_WAIT = (
    r"\b(?:(?:but )?wait|actually|oops|sorry|hm+|no(?=,)|on (?:second|reflection)|(?:my )?mistake|"
    r"hold on|correct(?:ion|ed)|edit(?=:)|(?:i |my )?apolog\w+|i (?:made|meant?|was wrong)|"
    r"scratch that|or rather|let me (?:reconsider|correct)|the (?:correct )?answer should be|"
    r"(?:this|that)(?:'s| is) (?:not right|wrong|incorrect)|"
    r"(?:however|but)\b(?=[^.\n]* (?:woman|man|female|male|should be)))\b"
)
BUT = re.compile(rf"{_WAIT}|\b(?:however|instead)\b")
CORRECTED = re.compile(
    rf"(?m)(?:^|[.!?])\W*(?:{_WAIT}(?s:.*)|(?:or|alternatively|ah|(?:it )?(?:could|may|might)"
    rf"(?: also)? be)\b\W*(?:an? |his |her )?)({R})"
)
IF = re.compile(r"\bif\b")
CUT_OFF = re.compile(
    rf"""(?:\b(?:of|the|an?|and|or|is|to|be|as|with|in|by|from|his|her|their)|[^\W_]'s|"""
    rf"""\b(?:is|was)\b[^.;\n]{{0,60}}{R}'s)[ *_`"']*$"""
)
# Another subject than the answer: "asked her R", "a story about her R".
IN_PASSING = re.compile(
    r"\b(?:(?:says|mention(?:s|ed)?|no)(?: only)?|(?:about|with|through|way of|from|via|kn[eo]ws?|"
    r"for|asked|after|visited|has|have|and(?= h))(?: only)? (?:an?|the|his|her|their|[^\W_]+'s)) "
    rf"[\"*_`]*{R}"
)
QUESTION = re.compile(rf"what is {Y} to {X} ?\?")  # of the prompt
# Markers of other people: "Relationship between Ann and Bob: ...", "Answer (Ann to Cy): ...".
OF_OTHERS = re.compile(rf"\b{Z}|\b{X}\]? to \[?{Y}")
# Before "the answer is ..." that is no answer.
HYPOTHETICAL = re.compile(r"\b(?:if|might|may|could|wrong|incorrect)\b[^.!?\n]*\Z")

# Patterns of the people of a relation, in the text before it: "Bob is the", "making Bob his",
# "Ann's older", "Ann has an"; and after it: "of Ann", "is Bob", "Bob".
_SIGNS = r"""["'*_`()\[\]]*"""
_NAME = rf"{X}|{Y}|{Z}"
_SUBJECT = re.compile(
    rf".*(?:\b({_NAME}){_SIGNS},?(?: (?:\w+ly|also|then|thus|indeed))*(?: =|(?: (?:would|must|"
    rf"should|has to|can only))? (?:is|was|be|becomes?|as)\b)|\bmak(?:es?|ing) {_SIGNS}({_NAME})\b)"
)
_RELATED = re.compile(
    rf".*(?:\b({_NAME})(?:{_SIGNS}'s relation\w*| is related)|\brelation\w* of {_SIGNS}({_NAME})"
    rf"{_SIGNS}) to\b"
)
_HEADED = re.compile(
    rf"\b({_NAME}){_SIGNS} to {_SIGNS}({_NAME}){_SIGNS} ?(?:[:=|]|-+>|→){_SIGNS} ?{_SIGNS}$"
)
_TO_WHOM = re.compile(
    rf"\b(?:to|of|for|with|from|between) {_SIGNS}(?:{_NAME})\b{_SIGNS}(?: (?:and|to) "
    rf"{_SIGNS}(?:{_NAME})\b)?(?!{_SIGNS}'s)"
)
_HOLDER = re.compile(
    rf"\b({_NAME}){_SIGNS}(?:'s?| has (?:an?|one)\b){_SIGNS}(?: (?!relation|role|answer|title|is\b|"
    rf"was\b)[^\W_]+){{0,2}}[ *_`\"(\[]*$"
)
_OF_WHOM = re.compile(rf"(?:'s)?{_SIGNS} (?:of|to|for) {_SIGNS}({_NAME})\b(?!{_SIGNS}'s)")
_IS_WHO = re.compile(
    rf"{_SIGNS}(?: (?:is|was|named|called|would be) {_SIGNS}({_NAME})\b(?!{_SIGNS}'s)|"
    rf" \({_SIGNS}({_NAME}){_SIGNS}(?<=\))|"
    rf"(?:,|:| ?(?:→|-+>?))? {_SIGNS}({_NAME})\b(?!{_SIGNS}(?:'s| is\b| was\b| has\b)))"
)
# Words between a subject and its relation that make no other statement of them.
_BETWEEN = re.compile(
    rf"(?:{_SIGNS} {_SIGNS}(?:an?|the|also|in|fact|own|her|his|older|elder|younger|twin|maternal|"
    rf"paternal|biological|\w+ly|(?:{_NAME}){_SIGNS}'s?)\b)*{_SIGNS} {_SIGNS}"
)
# The converse after an answer: "uncle, making her his niece".
_IN_RETURN = re.compile(
    rf"(?m)((?:{ASKED}|: ?|^){R}[^.;:\n{RELATIVES}]{{0,30}}\b(?:so|and|making|makes)\b (?:she|he|"
    rf"her|him)(?: is)? (?:his|her) ){R}"
)
_OF_ANOTHER = re.compile(rf"{_SIGNS}'s?{_SIGNS} {_SIGNS}(?:[^\W_]+ )?{_SIGNS}{R}|{_SIGNS} of\b")


def mark_statements(text: str) -> str:
    """Returns a text in the normal form, in which relations of other people than those of the query
    are `OTHERS`, those of the query with both names follow `ASKED`, and the converse is left out:
    what the first person is to the second."""

    def mark(found: re.Match[str]) -> str:
        before = text[max(found.start() - 120, 0) : found.start()]
        headed = _HEADED.search(before)
        *_, before = re.split(rf"[.;:!?\n{RELATIVES}]", before)
        after = text[found.end() : found.end() + 80]
        said = _TO_WHOM.sub(" ", before)
        subject, is_who, of_whom = _SUBJECT.match(said), _IS_WHO.match(after), _OF_WHOM.match(after)
        plain = headed or is_who or (subject and _BETWEEN.fullmatch(said[subject.end() :]))
        if headed:
            who, whose = headed.groups()
        else:
            who = _first(_RELATED.match(before)) or _first(is_who) or _first(subject)
            whose = _first(_HOLDER.search(before)) or _first(of_whom)
        if (who == X and whose in (None, Y)) or (who is None and whose == Y):
            return ""  # the converse
        if who not in (None, Y) or whose not in (None, X):
            return OTHERS
        asked = who and whose and plain and (of_whom or not _OF_ANOTHER.match(after))
        return f"{ASKED}{found[0]}" if asked else found[0]

    return _IN_RETURN.sub(r"\1", re.sub(R, mark, text))


def _first(found: re.Match[str] | None) -> str | None:
    """The group that a pattern has found."""
    return found and next(filter(None, found.groups()))
