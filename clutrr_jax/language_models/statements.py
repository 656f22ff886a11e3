"""Whose relations a text states, those of the query or of other people.

A text is in the normal form of `marked_text`. Exports to evaluation harnesses include a copy.
"""

import re

from clutrr_jax.language_models.marked_text import NAME, RELATIVES, R, X, Y

ASKED = "\ue005"  # before a relation that is stated of the query, with both names
OTHERS = "\U000f0fff"  # in place of a relation of other people

# Patterns of the people of a relation, in the text before it: "Bob is the", "making Bob his",
# "Ann's older", "Ann and Bob's", "Ann has an"; and after it: "of Ann", "is Bob", "Bob".
# Words between a subject and its relation that make no other statement of them.
_BETWEEN = (
    rf"(?:,? *(?:\b(?:an?|the|also|in|fact|own|her|his|older|elder|younger|twin|maternal|paternal|"
    rf"biological|and|as|well|both|adopted|\w+ly|{NAME}(?:'s)?)\b|{R}))* *[\"'(]?"
)
_SUBJECT = re.compile(
    rf".*(?:\b({NAME})\)?,?(?: (?:\w+ly|also|then|thus|indeed|who))*(?: =|(?: (?:would|must|should|"
    rf"has to|can(?: only)?|could|might|may))? (?:is|was|be|becomes?|as)\b)|"
    rf"\bmak(?:es?|ing) ({NAME})\b|\b({NAME})(?:,| ?\()(?={_BETWEEN}$))"
)
# "Cy to Ann: R", "Cy's relation to Ann is R", "the relation between Ann and Cy is R".
_ENDS = rf"\)? ?(?:[:=|→(]|[-=]+>|(?:is|as)\b)(?:(?!\b{NAME}\b)[^.;!?\n{RELATIVES}])*$"
_OF_TWO = re.compile(
    rf"\b({NAME})(?:'s relation\w*| is related)? ?(?:to|[|→⇒]|[-=]+>) ?({NAME}){_ENDS}|"
    rf"\bbetween ({NAME}) and ({NAME}){_ENDS}|\b({NAME}) and ({NAME}) are(?: both)? $"
)
# "| Cy | R", "- Cy: R", and whose they are: "| Relation to Ann |".
_ROW = re.compile(rf"(?:^|\n)[^\w\n]*(?:\d+\W+)?({NAME}) ?[|:=][* ]*(?:{NAME}'s |the )?$")
_TITLE = re.compile(rf"(?s).*\b(?:to|of|with) ({NAME})[ |:]*\n")
_TO_WHOM = re.compile(rf"\b(?:to|of|for|with|from|between) {NAME}\b(?: (?:and|to) {NAME}\b)?(?!'s)")
_HOLDER = re.compile(
    rf"\b((?:(?<!of ){NAME}(?:'s)?(?:,? (?:and|&)(?: both)? |, ))*{NAME})(?:'s?| has (?:an?|one)\b)"
    rf"(?: (?!relation|role|answer|title|is\b|was\b)\(?[^\W_]+\)?){{,3}}[ *\"'(]*$"
)
_OF_WHOM = re.compile(
    rf"(?:'s)?[\"')]* (?:of|to|for)(?: both)? ({NAME}(?:(?:,|,? and(?: of)?|,? &) {NAME})*)\b"
    rf"(?!'s| is\b| was\b| has\b)"
)
# After a relation, before another one of the same person: "Bob's R and Ann's R".
_ALSO = (
    rf"(?: (?:of|to) {NAME})?(?:,|,? (?:and|but|as well as))(?: also| is)* "
    rf"(?:{NAME}(?: (?:and|&) {NAME})?'s|the (?:\w+ )?$)"
)
_IS_WHO = re.compile(
    rf"[\"')]*(?: (?:is|was|named|called|would be) ({NAME})\b(?!'s)| \(({NAME})\)| ({NAME})(?='s)|"
    rf"(?:,|:| ?(?:→|-+>?))? ({NAME})\b(?!'s| is\b| was\b| has\b))"
)
# The converse after an answer: "uncle, making her his niece".
_IN_RETURN = re.compile(
    rf"(?m)((?:{ASKED}|: ?|^){R}[^.;:\n{RELATIVES}]{{0,30}}\b(?:so|and|making|makes)\b (?:she|he|"
    rf"her|him)(?: is)? (?:his|her) ){R}"
)
_INNER = re.compile(rf" of {NAME}'s(?: \w+)? $")  # the brother of Ann's R
_OF_ANOTHER = re.compile(rf"'s? (?:[^\W_]|{R})|[\"')]* of\b")


def mark_statements(text: str) -> str:
    """Returns a text in the normal form, in which relations of other people than those of the query
    are `OTHERS`, those of the query with both names follow `ASKED`, and the converse is left out:
    what the first person is to the second."""

    def mark(found: re.Match[str]) -> str:
        start, end = found.span()
        page, after = text[max(start - 400, 0) : start], text[end : end + 80]
        two, row = _OF_TWO.search(page[-120:]), _ROW.search(page)
        *_, before = re.split(rf"[.;:!?\n]|{R}(?!{_ALSO})", page[-120:])
        said = _TO_WHOM.sub(" ", before)
        subject, is_who, of_whom = _SUBJECT.match(said), _IS_WHO.match(after), _OF_WHOM.match(after)
        one, holder = row or is_who or subject, _HOLDER.search(before) or of_whom
        who = one[one.lastindex or 0] if one else None
        whose = re.findall(NAME, holder[1]) if holder else []
        if two:
            who, *whose = two.groups()[:2] if two[1] else sorted(filter(None, two.groups()))[::-1]
        elif row and not whose:
            whose = [title[1] if (title := _TITLE.match(page)) else X]
        elif not of_whom and not (is_who[1] if is_who else subject):
            whose = whose[-1:]  # in "Ann and Bob's sister Dee" those of Bob
        if (who == X and (Y in whose or not whose)) or (who is None and Y in whose):
            # The converse, unless of "Cy's mother is Ann's sister".
            return OTHERS if re.match(rf" (?:is|was) {NAME}'s", after) else ""
        if who not in (None, Y) or (whose and X not in whose) or _INNER.match(before):
            return OTHERS
        between = subject and re.fullmatch(_BETWEEN, said[subject.end() :])
        plain = (two or row or is_who or between) and (of_whom or not _OF_ANOTHER.match(after))
        return f"{ASKED}{found[0]}" if who and whose and plain else found[0]

    return _IN_RETURN.sub(r"\1", re.sub(R, mark, text))
