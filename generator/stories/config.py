"""Settings of a generated data set."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from math import inf
from typing import Any, NamedTuple

from generator.errors import InputError, check_range, one_of
from generator.stories.family import FamilyShape
from generator.stories.names import NAMES_PER_GENDER
from generator.stories.noise import NOISE_TYPES, NoiseType

MAX_FACTS = 30  # per clause: the people of a story must fit into a family and into 150 names
MAX_ROWS = 10_000_000  # stories per task
SPLITS = ("train", "test", "dev")
LANGUAGES = ("paraphrase", "synthetic", "plain")


class Task(NamedTuple):
    """Task T.K: noise type T (see `NOISE_TYPES`) and clause length K."""

    noise: int
    k: int

    @property
    def type(self) -> NoiseType:
        return NOISE_TYPES[self.noise]

    def __str__(self) -> str:
        return f"{self.noise}.{self.k}"


def parse_tasks(text: str) -> tuple[Task, ...]:
    """Parses a list of different tasks such as `1.2,1.3`; an empty text has none."""
    tasks = parse_pairs(text)
    for task in tasks:
        if task.noise not in NOISE_TYPES:
            known = ", ".join(f"{noise} ({type.name})" for noise, type in NOISE_TYPES.items())
            raise InputError(f'task "{task}": unknown noise type {task.noise}; expected {known}')
        if not 2 <= task.k <= MAX_FACTS:
            raise InputError(f'task "{task}": clause length {task.k}, expected 2 to {MAX_FACTS}')
    return tasks


def parse_pairs(text: str) -> tuple[Task, ...]:
    """Parses a list of different tasks T.K, whatever T and K mean."""
    tasks: list[Task] = []
    for part in text.split(",") if text else ():
        noise, dot, k = part.strip().removeprefix("task_").partition(".")
        if not (dot and noise.isdecimal() and k.isdecimal()):
            raise InputError(f'task "{part.strip()}": expected the form T.K, such as 1.3')
        task = Task(int(noise), int(k))
        if task in tasks:
            raise InputError(f'task "{task}" is listed twice')
        tasks.append(task)
    return tuple(tasks)


def parse_hold_out(text: str) -> tuple[str, ...]:
    """Parses `clauses,paraphrases`, one of the two, or `none`."""
    parts = tuple(sorted({part.strip() for part in text.split(",")} - {"none", ""}))
    if not set(parts) <= {"clauses", "paraphrases"}:
        raise InputError(f'hold_out "{text}": expected clauses,paraphrases, one of them, or none')
    return parts


def parse_rows(text: str | int) -> int | tuple[int, ...]:
    """Parses `5000`, or one number per task as in `5000,10000`."""
    counts = str(text).split(",")
    if not all(count.strip().isdecimal() for count in counts):
        raise InputError(
            f'rows "{text}": expected a number of 0 or more, or one per task, joined by commas'
        )
    return tuple(map(int, counts)) if len(counts) > 1 else int(counts[0])


def _parse_bool(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _setting(
    default: Any,
    paper: str,
    help_text: str,
    parse: Callable[[str], Any] | None = None,
    **limits: Any,
) -> Any:
    """A field of Config with its help text, its value in the paper or the released data, a parser,
    and its `low` and `high` values or its `choices`."""
    parse = parse or type(default)
    return field(
        default=default, metadata={"paper": paper, "help": help_text, "parse": parse} | limits
    )


@dataclass(frozen=True)
class Config:
    """The settings that determine the generated files, byte for byte."""

    train: tuple[Task, ...] = _setting(
        parse_tasks("1.2,1.3"), "1.2,1.3", "tasks T.K of the train file, joined by commas",
        parse_tasks,
    )  # fmt: skip
    test: tuple[Task, ...] = _setting(
        parse_tasks("1.2,1.3,1.4,1.5,1.6,1.7,1.8,1.9,1.10"),
        "1.2,...,1.10",
        "tasks T.K of the tests, one file each",
        parse_tasks,
    )
    train_rows: int | tuple[int, ...] = _setting(
        5000, "5000", "train stories per task: one number, or one per task", parse_rows
    )
    test_rows: int | tuple[int, ...] = _setting(
        100, "100", "test stories per task: one number, or one per task", parse_rows
    )
    dev_rows: int | tuple[int, ...] = _setting(
        0,
        "0; 20 % of the train stories are split off instead",
        "dev stories per task, distributed as the train stories; training reads them as train "
        "stories and splits off its own",
        parse_rows,
    )
    seed: int = _setting(
        0,
        "unknown",
        "random seed; the same seed and settings give the same files",
        low=0,
        high=2**63 - 1,
    )
    max_levels: int = _setting(3, "3", "generations per family", low=2, high=15)
    min_child: int = _setting(4, "4", "minimum number of children per couple", low=1)
    max_child: int = _setting(4, "4", "maximum number of children per couple")
    p_marry: float = _setting(1.0, "1.0", "probability that a descendant marries", low=0, high=1)
    hold_out: tuple[str, ...] = _setting(
        ("clauses", "paraphrases"),
        "clauses,paraphrases",
        "test data that never occurs in training: clauses, paraphrases, both (joined by a comma) "
        "or none",
        parse_hold_out,
    )
    clause_fraction: float = _setting(
        0.1,
        "0.1",
        "fraction of the clauses of 3 or more facts in training that is held out",
        low=0,
        high=1,
    )
    paraphrase_fraction: float = _setting(
        0.2, "0.2", "fraction of the paraphrases that is held out", low=0, high=1
    )
    equal_clauses: bool = _setting(
        False,
        "yes (as released)",
        "use each clause equally often; clauses too long to enumerate (over 5 facts in default "
        "families) occur at most once",
        _parse_bool,
    )
    unique_test_clauses: bool = _setting(
        False,
        "yes (as released, for clause lengths that are not trained on)",
        "use each clause at most once per test file",
        _parse_bool,
    )
    ambiguous: str = _setting(
        "drop",
        "keep",
        "drop or keep stories whose facts imply several answers",
        choices=("drop", "keep"),
    )
    supporting_length: int = _setting(2, "2 (as released)", "facts per supporting detour", low=2)
    irrelevant_length: int = _setting(1, "1 (as released)", "facts per irrelevant walk", low=1)
    disconnected_length: int = _setting(1, "1 (as released)", "facts per disconnected walk", low=1)
    language: str = _setting(
        "paraphrase",
        "paraphrase",
        "paraphrase: short stories; synthetic: one plain sentence per fact; plain: also inverse "
        "relations and two facts per sentence",
        choices=LANGUAGES,
    )
    bank: str = _setting(
        "", "crowd-sourced", "JSON file of paraphrases, as written by import-paraphrases"
    )

    @property
    def shape(self) -> FamilyShape:
        return FamilyShape(self.max_levels, self.min_child, self.max_child, self.p_marry)

    def tasks(self, split: str) -> tuple[Task, ...]:
        """Returns the tasks of a split; dev has the same tasks as train."""
        return self.test if split == "test" else self.train

    def rows(self, split: str, task: Task) -> int:
        """Returns the number of stories of one of the tasks of a split."""
        rows = getattr(self, f"{split}_rows")
        return rows if isinstance(rows, int) else rows[self.tasks(split).index(task)]

    def max_people(self, task: Task) -> int:
        """Returns the maximum number of people in a story of a task."""
        walks = task.type.walks
        return task.k + 1 + sum(getattr(self, walk.setting) + walk.more for walk in walks)

    def holds_out_clauses(self, k: int) -> bool:
        """Returns True if some clauses of k facts are reserved for tests.

        Clauses of 2 facts are never held out, so that training covers all rules (paper, footnote
        3). Lengths without training tasks need no hold-out: all their clauses are new in tests.
        """
        return "clauses" in self.hold_out and k > 2 and any(task.k == k for task in self.train)

    def to_json(self) -> dict[str, Any]:
        """Returns the settings as JSON values; tuples become comma-separated text."""
        return {
            name: ",".join(map(str, value)) if isinstance(value, tuple) else value
            for name, value in ((f.name, getattr(self, f.name)) for f in fields(self))
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Config":
        """Inverse of `to_json`."""
        known = {f.name: f for f in fields(cls)}
        parsed: dict[str, Any] = {}
        for name, value in values.items():
            if name not in known:
                raise InputError(f'unknown setting "{name}"; expected {", ".join(sorted(known))}')
            try:
                parsed[name] = known[name].metadata["parse"](str(value))
            except (ValueError, KeyError):
                kinds = {int: "an integer", bool: "True or False"}
                expected = kinds.get(type(known[name].default), "a number")
                raise InputError(f'setting "{name}": "{value}", expected {expected}') from None
        return cls(**parsed)

    def __post_init__(self) -> None:
        for f in fields(self):
            limits, value = f.metadata, getattr(self, f.name)
            if "choices" in limits:
                one_of(f.name, value, limits["choices"])
            elif "low" in limits:
                check_range(f.name, value, limits["low"], limits.get("high", inf))
        check_range("max_child", self.max_child, self.min_child)
        if self.bank and self.language != "paraphrase":
            raise InputError(
                f'bank "{self.bank}": expected without a bank, or the language paraphrase instead '
                f"of {self.language}"
            )
        for split in SPLITS:
            rows, tasks = getattr(self, f"{split}_rows"), self.tasks(split)
            counts = (rows,) if isinstance(rows, int) else rows
            wrong_number = rows is counts and len(rows) != len(tasks)
            if wrong_number or not all(0 <= count <= MAX_ROWS for count in counts):
                raise InputError(
                    f"{split}_rows {','.join(map(str, counts))}: expected a number of 0 to "
                    f"{MAX_ROWS}, or one for each of the {len(tasks)} tasks"
                )
        for task in (*self.train, *self.test):
            if (people := self.max_people(task)) > NAMES_PER_GENDER:
                raise InputError(
                    f'task "{task}": stories of up to {people} people with these lengths of noise, '
                    f"expected at most {NAMES_PER_GENDER}"
                )
        if self.shape.max_people() > 20_000:
            raise InputError(
                f"families of {self.max_levels} levels and {self.max_child} children are too "
                "large; expected max_levels and max_child for at most 20000 people"
            )
