"""From the text of a language model to a relation."""

import csv
import json
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clutrr_jax.language_models.answers import to_relation
from generator.relations.kinship import NUM_RELATIONS, RELATIONS

HERE = Path(__file__).parent
PROOF = (
    "Bob is the son of Ann and Cy is the sister of Bob, so Cy is the daughter of Ann. "
    "Cy is the daughter of Ann and Di is the husband of Cy, so Di is the son-in-law of Ann."
)


def read_cases() -> Iterator[dict[str, str | None]]:
    """Texts as language models write them, and the relation that each states, or None. Characters
    are escaped as in Python, and PROOF stands for the text above. `named`: whether the text is read
    with the names of `of_query`, so that the relation is that of Cy to Ann: "yes", "no" or "both";
    "form" is a frame of a relation in-law."""
    with (HERE / "answer_cases.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            text = row["text"].replace("PROOF", PROOF).encode().decode("unicode_escape")
            yield row | {"relation": row["relation"] or None, "text": text}


CASES = list(read_cases())
IN_LAW = [row["text"] for row in CASES if row["topic"] == "in law"]
# Answers with the topic, the text, the relation that it states (gold), and query and names if they
# are not those of `of_query`; "wrong" marks a known limit.
BORDER = [
    json.loads(line) for line in (HERE / "border_answers.jsonl").read_text("utf-8").splitlines()
]

relations = st.integers(0, NUM_RELATIONS - 1)
# Text around an answer, without relatives or markers of an answer.
before_it = st.sampled_from(["", "**", '"', "\n", "Well: ", "I would say (", "her ", "Bob's "])
after_it = st.sampled_from(["", "**", '"', "\n", "  ", "!", ".", ")", " of Bob", ", I would say"])


def plural(name: str) -> str:
    """sons, sisters-in-law, wives."""
    word, *law = name.split("-", 1)
    return "-".join(["wives" if word == "wife" else word + "s", *law])


surfaces = st.tuples(
    st.sampled_from([str.lower, str.upper, str.title, str.capitalize]),
    st.sampled_from(
        ["-", " ", "_", "\N{NON-BREAKING HYPHEN}", "\N{EN DASH}", "\N{NO-BREAK SPACE}", r"\_", "~",
         "&#8209;", r"\text{-}", "\N{FULLWIDTH HYPHEN-MINUS}", "\N{ZERO WIDTH SPACE}"]
    ),
    st.sampled_from([str, plural, lambda name: name + "'s", lambda name: name + "\u2019s"]),
)  # fmt: skip


@given(relations, surfaces, before_it, after_it)
def test_a_relation_is_recognized_in_every_form(relation, surface, before, after) -> None:
    case, hyphen, ending = surface
    text = hyphen.join(case(ending(RELATIONS[relation])).split("-"))
    name = RELATIONS[relation]
    assert to_relation(before + text + after, RELATIONS) == name
    for longer in (
        f"Let me think: uncle, niece.\nFinal answer: {text}\nSo: aunt",
        f"<think>son? wife?</think>\n\n{before}{text}",
        json.dumps({"answer": text, "why": "son, aunt"}, ensure_ascii=False),
        rf"Bob is a brother. \boxed{{\text{{{text}}}}}",
        f"{PROOF}\n\n**{text}**",
        f"{PROOF} Therefore, Ed is the {text} of Ann.",
    ):
        assert to_relation(longer, RELATIONS) == name, longer


@given(relations, relations)
def test_several_different_relations_are_not_mapped(one, other) -> None:
    text = f"{RELATIONS[one]}, or maybe her {RELATIONS[other]}"
    assert to_relation(text, RELATIONS) == (RELATIONS[one] if one == other else None)


@given(st.text(string.ascii_lowercase, max_size=3), relations)
def test_a_relation_within_a_word_is_ignored(letters, relation) -> None:
    name = RELATIONS[relation]
    for text in (f"x{letters}{name}", f"{name}x{letters}"):
        assert to_relation(text, RELATIONS) is None


# Any characters but letters and digits, entities, and commands of LaTeX.
separators = st.one_of(
    st.text(st.characters(exclude_categories=["L", "N", "M", "Cs"]), max_size=4),
    st.lists(
        st.sampled_from(
            ["&nbsp;", "&#8209;", "&shy;", "&amp;ndash;", r"\_", r"\-", r"\,", r"\text{-}", r"\ ",
             "$-$", r"\textendash ", "{}", "**", "</b>", "<br>", "%20", r"\u2011", "\u0335", "-"]
        ), max_size=3,
    ).map("".join),
)  # fmt: skip
frames = st.sampled_from(
    ["{}", "Answer: {}", "He is her {}.", r"\boxed{{{}}}", "<answer>{}</answer>",
     '{{"answer": "{}"}}', "The answer is {}.", "Bob is a son.\n\n**{}**", "Thus, he is her {}."]
)  # fmt: skip


@given(frames, separators, separators)
def test_in_law_is_never_lost(frame, one, other) -> None:
    for name in ("father", "son"):
        found = to_relation(frame.format(f"{name}{one}in{other}law"), RELATIONS)
        assert found in (None, f"{name}-in-law")


# The end of a line may be that of a sentence: "This is great.\nmother".
in_a_line = separators.filter(lambda text: text.splitlines() in ([], [text]))


@given(frames, st.sampled_from(["step", "great", "half", "ex", "former", "foster"]), in_a_line)
@example("{}", "step", "\n")
@example("{}", "great", "-\n")
@example("{}", "step", "<br><br>")
def test_a_relative_outside_the_benchmark_is_never_mapped(frame, prefix, separator) -> None:
    for name in ("mother", "aunt", "mother-in-law"):
        assert to_relation(frame.format(prefix + separator + name), RELATIONS) is None
    found = to_relation(frame.format(f"grand{separator}mother"), RELATIONS)
    assert found in (None, "grandmother")
    assert to_relation(frame.format(f"grand{separator}aunt"), RELATIONS) is None


@pytest.mark.parametrize(
    "text",
    ["Let me go step by step\n\n{}", "Step by step: {}", "{} (step by step)", "Last step.\n\n{}",
     "Here is the chain, step by step:\n\n{}", "We go step by step.\n\n**{}**", "Great!\n{}",
     "This is great.\n\n{}", "As in the former.\n{}"]
)  # fmt: skip
def test_words_at_the_end_of_a_sentence_change_no_relative(text: str) -> None:
    for name in ("mother", "sister-in-law"):
        assert to_relation(text.format(name), RELATIONS) == name


def test_in_law_is_never_lost_in_these_forms() -> None:
    for row in CASES:
        if row["topic"] == "never without law":
            for name in ("father", "sister"):
                found = to_relation(row["text"].format(name), RELATIONS)
                assert found in (None, f"{name}-in-law"), row


# Text that begins no thought and no further example.
thoughts = st.lists(
    st.sampled_from(
        ["Bob", " is", " Ann's", " son", " daughter-in-law", ". ", "\n", "So ", "Answer: ", "wait,",
         " {", "}", '"answer": "', "<b>", r"\text{", r"\boxed{son}", "(", "`", "- ",
         "the answer is",
         "Therefore, ", "unknown", "?", "step ", "~~", "not "]
    ), max_size=12,
).map("".join)  # fmt: skip
anything = st.one_of(thoughts, st.text(max_size=30))
strong = st.sampled_from(
    ["\nAnswer: {}", "\n**Final answer:** {}", "\n\\boxed{{{}}}", "\n<answer>{}</answer>",
     '\n{{"answer": "{}", "why": "son"}}', "\n### Answer\n{}", "\nAnswer: {} (Bob is a son)"]
)  # fmt: skip


@given(anything, strong, relations)
@example("Let us go step by step.", " \\boxed{{{}}}", RELATIONS.index("mother"))
def test_text_before_a_marker_never_changes_the_answer(before, marker, relation) -> None:
    text = before + marker.format(RELATIONS[relation])
    assert to_relation(text, RELATIONS) == RELATIONS[relation]


@given(
    st.sampled_from(["", "<think>son</think>", "<think>son</think>\naunt\n", "Answer: aunt\n"]),
    st.sampled_from(
        ["<think>", "<thinking>", "[THINK]", "<|channel|>analysis<|message|>", "&lt;think&gt;",
         "<reasoning>", "<seed:think>", "\u25c1think\u25b7"]
    ), thoughts, st.integers(0, 60),
)  # fmt: skip
def test_a_prefix_of_a_thought_is_never_an_answer(earlier, tag, thought, length) -> None:
    text = earlier + tag + (thought + "Answer: daughter")[:length]
    assert to_relation(text, RELATIONS) is None


def of_query(text: str) -> str | None:
    return to_relation(text, RELATIONS, ("Ann", "Cy"), ("Bob", "Ann", "Dee", "Cy"))


@pytest.mark.parametrize("topic", dict.fromkeys(row["topic"] for row in CASES))
def test_the_stated_rules(topic: str) -> None:
    """What holds an answer back needs no names: such cases are read with and without them."""
    readers = {"yes": [of_query], "no": [plain], "both": [of_query, plain], "form": []}
    wrong = [
        (row["text"], found)
        for row in CASES
        if row["topic"] == topic
        for reader in readers[row["named"]]
        if (found := reader(row["text"])) != row["relation"]
    ]
    assert not wrong


def plain(text: str) -> str | None:
    return to_relation(text, RELATIONS)


def test_a_relative_outside_the_benchmark_is_no_answer_after_a_marker() -> None:
    for row in CASES:
        if row["topic"] == "outside":
            assert plain(f"Bob is the son.\nAnswer: {row['text']}") is None, row


def of_row(row: dict, text: str) -> str | None:
    return (
        to_relation(text, RELATIONS, row["query"], row["names"])
        if "query" in row
        else of_query(text)
    )


@pytest.mark.parametrize("topic", sorted({row["topic"] for row in BORDER}))
def test_answers_at_the_borders(topic: str) -> None:
    rows = [row for row in BORDER if row["topic"] == topic]
    wrong = [row["text"] for row in rows if of_row(row, row["text"]) != row["gold"]]
    assert wrong == [row["text"] for row in rows if "wrong" in row]


@pytest.mark.parametrize("case", [str.lower, str.upper])
def test_case_never_changes_the_answer(case) -> None:
    """As of a file in which all is written in one case. Commands of LaTeX are lower case."""
    rows = BORDER + [{"text": row["text"]} for row in CASES if row["named"] in ("yes", "both")]
    for text, row in ((row["text"], row) for row in rows if "\\" not in row["text"]):
        assert of_row(row, case(text)) == of_row(row, text), text


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("rest", ["Explanation: so Cy is the aunt of Ann.", "Cy is Ann's aunt."])
def test_a_statement_that_contradicts_the_answer_is_not_mapped(rest: str, strict: bool) -> None:
    people = (("Ann", "Cy"), ("Ann", "Bob", "Cy"))
    found = [to_relation(f"{name}\n\n{rest}", RELATIONS, *people, strict=strict)
             for name in ("aunt", "mother")]  # fmt: skip
    assert found == ["aunt", None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Answer: Cy is her aunt.", "aunt"), ("So \\boxed{aunt}", "aunt"), ("aunt", "aunt"),
     ('{"answer": "aunt"}', "aunt"), ("Bob is her son.\n\n**Aunt**", "aunt"),
     ("aunt, because Bob is her son", "aunt"), ("The answer is aunt.", "aunt"),
     ("Cy is Ann's aunt.", None), ("Bob is her son, so Cy is her aunt.", None),
     ("Answer: Bob is Dee's son.\nSo Cy is Ann's aunt.", None)],
)  # fmt: skip
def test_strictly_only_a_relation_that_stands_alone_counts(text, expected) -> None:
    people = (("Ann", "Cy"), ("Ann", "Bob", "Cy", "Dee"))
    assert to_relation(text, RELATIONS, *people) == "aunt"
    assert to_relation(text, RELATIONS, *people, strict=True) == expected


# Of "Cy is Ann's {r}": frames, and changes after which it states no relation of Cy to Ann.
frames_of_statements = st.sampled_from(
    ["{}", "Answer: {}", "So {}.", "Based on the story, {}.", "<answer>{}</answer>",
     "Dee is Bob's sister. {}.", "{}\n\nExplanation: Dee is Bob's sister.", '{{"answer": "{}"}}',
     "The answer is: {}", "[BEGIN FINAL RESPONSE]\n{}", "**{}**"]
)  # fmt: skip
open_or_of_others = st.sampled_from(
    ["{r} or {o}", "{r}/{o}", "{r} (or her {o})", "{r}, or maybe a friend", "{r} or a neighbor",
     "{r} if Bob is her {o}", "{r}, unless Bob is not her {o}", "{r}, depending on the case",
     "{r} by marriage", "{r} (by marriage)", "{r}'s {o}", "{r}'s friend", "friend's {r}",
     "{r}'s boss's {o}", "{r} Bob's {o}", "friend Bob's {r}"]
)  # fmt: skip
also = st.sampled_from(
    ["Cy is Ann's {r}, making him Bob's {o}", "Cy is Ann's {r} and Bob's {o}",
     "Cy is Bob's {o} and Ann's {r}", "Cy is Ann and Bob's {r}", "Cy is the {r} of Bob and Ann",
     "Cy is Ann's and Bob's {r}", "Cy, Ann's {r}, is Bob's {o}", "Cy \u2192 Ann = {r}",
     "Cy is the {o} of Bob and the {r} of Ann", "Cy is Ann's {r}, so she is Bob's {o}"]
)  # fmt: skip
other_relations = st.tuples(relations, relations).filter(lambda two: two[0] != two[1])


@given(frames_of_statements, open_or_of_others, other_relations)
def test_an_alternative_or_a_relative_of_a_relative_is_never_mapped(frame, form, two) -> None:
    r, o = (RELATIONS[one] for one in two)
    text = frame.format("Cy is Ann's " + form.format(r=r, o=o))
    assert of_query(text) is None, text


@given(frames_of_statements, also, other_relations)
def test_what_else_the_second_person_is_does_not_change_the_answer(frame, form, two) -> None:
    r, o = (RELATIONS[one] for one in two)
    text = frame.format(form.format(r=r, o=o))
    assert of_query(text) == r, text


@given(
    st.sampled_from(["Cy is Ann's {}.", "So Cy is the {} of Ann.", "The answer is {}.", "{}"]),
    st.sampled_from(
        ["\n\nFinal Answer: {}", "\n**Answer:** {}", "\n<answer>{}</answer>", "\n### Answer\n{}",
         '\n{{"answer": "{}"}}', "\n\\boxed{{\\text{{{}}}}}", " Final Answer: {}",
         "\nThe final answer is that {}", "\nCorrection: {}"]
    ),
    st.sampled_from(
        ["Cy is Bob's {}", "Bob is Ann's {}", "Dee's {} is Cy", "Cy's relation to Bob is {}"]
    ), relations, relations,
)  # fmt: skip
def test_no_step_counts_before_a_marker_of_other_people(step, marker, other, one, two) -> None:
    text = step.format(RELATIONS[one]) + marker.format(other.format(RELATIONS[two]))
    assert of_query(text) is None, text


@given(
    st.sampled_from(
        [("<|channel>thought\n", "<channel|>"), ("<|inner_prefix|>", "<|inner_suffix|>"),
         ("<longcat_think>", "</longcat_think>"), ("<mm:think>", "</mm:think>"),
         ("", "[BEGIN FINAL RESPONSE]"), ("<|think|>", "<|/think|>")]
    ), thoughts, st.sampled_from(["aunt", "Answer: aunt", "Cy is Ann's **aunt**."]),
)  # fmt: skip
def test_thoughts_of_newer_models_are_dropped(tags, thought, answer) -> None:
    begin, end = tags
    assert of_query(begin + thought + end + answer) == "aunt"
    if begin:
        assert of_query("uncle\n" + begin + thought) is None


statements = st.sampled_from(
    ["{y} is {x}'s {r}.", "{y} is the {r} of {x}.", "{x}'s {r} is {y}.", "{y} to {x}: {r}",
     "{y} must be **{x}'s {r}**.", "[{y}] is the *{r}* of [{x}].", "{y} = {x}'s {r}",
     "{x} has one {r}, {y}."]
)  # fmt: skip
lines = st.sampled_from(["{}", "Answer: {}", "So {}", "**Relation:** {}", "<think>Hm.</think>\n{}"])


@given(lines, statements, relations, st.permutations(["Ann", "Bob", "Cy", "Dee"]))
def test_a_relation_of_other_people_is_never_the_answer(line, statement, relation, people) -> None:
    x, y, *_ = people
    text = line.format(statement.format(x=x, y=y, r=RELATIONS[relation]))
    asked = (x, y) == ("Ann", "Cy")
    assert of_query(text) == (RELATIONS[relation] if asked else None), text


@given(statements, relations, st.lists(st.tuples(statements, relations), min_size=1, max_size=3))
def test_other_statements_do_not_change_that_of_the_query(statement, relation, others) -> None:
    answer = statement.format(x="Ann", y="Cy", r=RELATIONS[relation])
    facts = [other.format(x="Bob", y="Dee", r=RELATIONS[r]) for other, r in others]
    for text in ("\n".join([answer, *facts]), "\n".join([*facts, answer]), f"Answer: {answer}"):
        assert of_query(text) == RELATIONS[relation], text


@given(statements, statements, relations, relations)
def test_the_names_decide_and_not_their_spelling(statement, other, relation, fact) -> None:
    """Any names, also such that are words, have several words or are part of another one."""
    for x, y, z in (
        ("Will", "Mark", "Hope"),
        ("Jo", "Joan", "Jo Ann"),
        ("Zo\u00eb", "R\u00e9my", "Al"),
    ):
        text = other.format(x=y, y=z, r=RELATIONS[fact]) + "\n"
        text += statement.format(x=x, y=y, r=RELATIONS[relation])
        assert to_relation(text, RELATIONS, (x, y), (x, y, z)) == RELATIONS[relation], text


def test_every_relation_in_law_in_every_form() -> None:
    for form in IN_LAW:
        for name in RELATIONS:
            if name.endswith("-in-law"):
                text = form.format(name.removesuffix("-in-law"))
                assert to_relation(text, RELATIONS) == name, text


@pytest.mark.parametrize(
    "part",
    [PROOF + " ", "Answer: son or aunt\n", r"\boxed{", "<think>", "great ", "\n", "son ",
     "<answer>",
     '"answer": "', "what is ", "Story:\n", "(", "~~", "the answer is "],
)  # fmt: skip
def test_the_answer_after_a_long_text(part: str) -> None:
    """200 kB, which take minutes if a pattern needs quadratic time."""
    expected = None if part == "<think>" else "aunt"
    text = part * (200_000 // len(part))
    assert to_relation(f"{text}\n\nAnswer: aunt", RELATIONS) == expected
