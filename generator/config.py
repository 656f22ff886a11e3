"""What to generate: the parameters, their defaults, and the values of the paper."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from generator.errors import InputError
from generator.family import FamilyShape

# T of a task T.K. Task 5 has noise facts of all three kinds; 7 mixes tasks 1 and 6.
CLEAN, SUPPORTING, IRRELEVANT, DISCONNECTED, ALL_NOISE, MEMORY, MIXED = range(1, 8)
TASKS = {
    CLEAN: "clean",
    SUPPORTING: "supporting",
    IRRELEVANT: "irrelevant",
    DISCONNECTED: "disconnected",
    ALL_NOISE: "all three kinds of noise",
    MEMORY: "memory",
    MIXED: "mix of 1 and 6",
}
MAX_FACTS = 30  # of a clause: people of a story have to fit into a family and into 150 names
SPLITS = ("train", "test", "dev")
LANGUAGES = ("paraphrase", "synthetic")


class Task(NamedTuple):
    """Task T.K: the kind of noise T (1 to 7) and the clause length K."""

    noise: int
    k: int

    def __str__(self) -> str:
        return f"{self.noise}.{self.k}"


def parse_tasks(text: str) -> tuple[Task, ...]:
    """`1.2,1.3` -> tasks; nothing -> none. Raises InputError for what is no task."""
    found: list[Task] = []
    if not text:
        return ()
    for part in text.split(","):
        noise, dot, k = part.strip().removeprefix("task_").partition(".")
        if not (dot and noise.isdecimal() and k.isdecimal()):
            raise InputError(f'task "{part.strip()}" is not of the form T.K, as in 1.3')
        task = Task(int(noise), int(k))
        if task.noise not in TASKS:
            known = ", ".join(f"{number} {name}" for number, name in TASKS.items())
            raise InputError(f'task "{task}": unknown kind {task.noise}; there are {known}')
        if not 2 <= task.k <= MAX_FACTS:
            raise InputError(f'task "{task}": clause length {task.k} is not in 2..{MAX_FACTS}')
        if task in found:
            raise InputError(f'task "{task}" is given twice')
        found.append(task)
    return tuple(found)


def _parameter(default: Any, paper: str, meaning: str) -> Any:
    return field(default=default, metadata={"paper": paper, "help": meaning})


@dataclass(frozen=True)
class Config:
    """All that decides the bytes of the output. Each parameter with its value in the paper."""

    train: tuple[Task, ...] = _parameter(
        parse_tasks("1.2,1.3"), "1.2,1.3", "tasks T.K of the train file"
    )
    test: tuple[Task, ...] = _parameter(
        parse_tasks("1.2,1.3,1.4,1.5,1.6,1.7,1.8,1.9,1.10"),
        "1.2,...,1.10",
        "tasks T.K, one test file each",
    )
    train_rows: int | tuple[int, ...] = _parameter(
        5000, "5000", "train stories per task: one number, or one for each"
    )
    test_rows: int | tuple[int, ...] = _parameter(
        100, "100", "test stories per task: one number, or one for each"
    )
    dev_rows: int | tuple[int, ...] = _parameter(
        0, "0: the readers of the data split off 20 %", "dev stories per task, drawn like train"
    )
    seed: int = _parameter(0, "not given", "same seed, same bytes")
    max_levels: int = _parameter(3, "3", "generations of a family")
    min_child: int = _parameter(4, "4", "fewest children of a couple")
    max_child: int = _parameter(4, "4", "most children of a couple")
    p_marry: float = _parameter(1.0, "1.0", "probability that a child of a family marries")
    hold_out: tuple[str, ...] = _parameter(
        ("clauses", "paraphrases"),
        "clauses,paraphrases",
        "what of the tests no train story may show: clauses, paraphrases, both (joined by a "
        "comma), or none",
    )
    clause_fraction: float = _parameter(
        0.1, "0.1", "part of the clauses of 3 and more facts that is held out"
    )
    paraphrase_fraction: float = _parameter(0.2, "0.2", "part of the paraphrases held out")
    equal_clauses: bool = _parameter(
        False,
        "yes (as released)",
        "as many stories of each clause, where clauses can be listed "
        "(up to 5 facts in families as released), else each clause once",
    )
    unique_test_clauses: bool = _parameter(
        False, "yes (as released, for lengths not trained on)", "no clause twice in a test file"
    )
    ambiguous: str = _parameter(
        "drop", "keep", "stories whose facts derive several answers: drop or keep"
    )
    supporting_length: int = _parameter(2, "2 (as released)", "facts of a supporting detour")
    irrelevant_length: int = _parameter(1, "1 (as released)", "facts of an irrelevant path")
    disconnected_length: int = _parameter(1, "1 (as released)", "facts of a disconnected path")
    language: str = _parameter(
        "paraphrase",
        "paraphrase",
        "paraphrase: little stories; synthetic: one plain sentence per fact",
    )
    bank: str = _parameter(
        "", "paraphrases of the crowd", "file of another bank, as import-paraphrases writes it"
    )

    def __post_init__(self) -> None:
        self._check()

    @property
    def shape(self) -> FamilyShape:
        return FamilyShape(self.max_levels, self.min_child, self.max_child, self.p_marry)

    def tasks(self, split: str) -> tuple[Task, ...]:
        """The tasks of a split; dev has those of train."""
        return self.test if split == "test" else self.train

    def rows(self, split: str, task: Task) -> int:
        """How many stories of one of its tasks a split has."""
        rows = {"train": self.train_rows, "test": self.test_rows, "dev": self.dev_rows}[split]
        return rows if isinstance(rows, int) else rows[self.tasks(split).index(task)]

    def most(self, task: Task) -> tuple[int, int]:
        """Most people and most facts of a story of a task."""
        people, facts = task.k + 1, task.k
        for kind, length, new in (
            (SUPPORTING, self.supporting_length, self.supporting_length - 1),
            (IRRELEVANT, self.irrelevant_length, self.irrelevant_length),
            (DISCONNECTED, self.disconnected_length, self.disconnected_length + 1),
        ):
            if task.noise in (kind, ALL_NOISE):
                people, facts = people + new, facts + length
        return people, facts + (task.noise in (MEMORY, MIXED))

    def holds_out_clauses(self, k: int) -> bool:
        """Whether part of the clauses of k facts is kept for the tests.

        Never for k = 2, so that all rules are seen in training (paper, footnote 3), and not for a k
        that is not trained on, of which all clauses are new to the tests.
        """
        return "clauses" in self.hold_out and k > 2 and any(task.k == k for task in self.train)

    def to_json(self) -> dict[str, Any]:
        """Plain values: lists as text."""
        return {
            name: ",".join(map(str, value)) if isinstance(value, tuple) else value
            for name, value in ((f.name, getattr(self, f.name)) for f in fields(self))
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Config":
        """The inverse of `to_json`. Raises InputError for what is no setting."""
        known = {f.name: f for f in fields(cls)}
        parsed: dict[str, Any] = {}
        for name, value in values.items():
            if name not in known:
                raise InputError(f'unknown setting "{name}"; there are {", ".join(sorted(known))}')
            parse: Callable[[Any], Any] = PARSE.get(name, type(known[name].default))
            if not isinstance(value, int | float | str):
                raise InputError(f'setting "{name}": "{value}" is not a number or text')
            try:
                plain = str(value) if name in PARSE else value
                parsed[name] = value if isinstance(value, bool) else parse(plain)
            except (ValueError, OverflowError):
                raise InputError(f'setting "{name}": "{value}" is no {parse.__name__}') from None
        return cls(**parsed)

    def _check(self) -> None:
        least = {
            "seed": 0, "max_levels": 2, "min_child": 1, "max_child": self.min_child,
            "supporting_length": 2, "irrelevant_length": 1, "disconnected_length": 1,
        }  # fmt: skip
        for name, bound in least.items():
            if getattr(self, name) < bound:
                option = name.replace("_", "-")
                raise InputError(f"--{option} {getattr(self, name)} must be at least {bound}")
        for name in ("p_marry", "clause_fraction", "paraphrase_fraction"):
            if not 0 <= getattr(self, name) <= 1:
                option = name.replace("_", "-")
                raise InputError(f"--{option} {getattr(self, name)} must be between 0 and 1")
        for split in SPLITS:
            rows, tasks = getattr(self, f"{split}_rows"), self.tasks(split)
            counts = [rows] if isinstance(rows, int) else rows
            if min(counts) < 0 or (not isinstance(rows, int) and len(rows) != len(tasks)):
                raise InputError(
                    f"--{split}-rows {','.join(map(str, counts))} must be one number, or one for "
                    f"each of the {len(tasks)} tasks, of at least 0"
                )
        if self.language not in LANGUAGES:
            raise InputError(f'--language "{self.language}" must be {" or ".join(LANGUAGES)}')
        if self.seed >= 2**63:
            raise InputError(f"--seed {self.seed} must be below 2 ** 63")
        if self.ambiguous not in ("drop", "keep"):
            raise InputError(f'--ambiguous "{self.ambiguous}" must be drop or keep')
        # Before the power is taken, which may be a number of any length.
        deep = self.max_levels > (15 if self.max_child > 1 else 10_000) or self.max_child > 20_000
        if deep or self.shape.max_people() > 20_000:
            raise InputError(f"families of {self.max_levels} levels and {self.max_child} children; "
                             "choose --max-levels and --max-child so that there are at most 20000 "
                             "people")  # fmt: skip


def parse_hold_out(text: str) -> tuple[str, ...]:
    """`clauses,paraphrases`, one of them, or `none`. Raises InputError."""
    parts = tuple(sorted({part.strip() for part in text.split(",")} - {"none", ""}))
    if not set(parts) <= {"clauses", "paraphrases"}:
        raise InputError(f'--hold-out "{text}" must be clauses,paraphrases, one of them, or none')
    return parts


def parse_rows(text: str | int) -> int | tuple[int, ...]:
    """`5000`, or `5000,10000`: one number per task. Raises InputError."""
    numbers = str(text).split(",")
    if not all(number.strip().isdecimal() for number in numbers):
        raise InputError(f'rows "{text}" must be a number, or one for each task joined by commas')
    return tuple(map(int, numbers)) if len(numbers) > 1 else int(numbers[0])


PARSE: dict[str, Callable[[str], Any]] = {
    "train": parse_tasks,
    "test": parse_tasks,
    "hold_out": parse_hold_out,
    "train_rows": parse_rows,
    "test_rows": parse_rows,
    "dev_rows": parse_rows,
}
