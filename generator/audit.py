"""Audit of CLUTRR data, released or new.

An independent prover derives the relations that the stated facts of a row imply for its query pair.
The exit code is 1 if a label is wrong. Columns of the report:

  unique             rows whose label is the only implied relation
  ambiguous          rows for which other relations are implied as well
  wrong              rows without a label, or whose label is not implied or has the wrong gender;
                     the label of a row without facts is compared with the genders alone
  twice              stories that occur earlier in the file
  unnamed            rows with a person who is not in the story
  disagree           rows whose k, f_comb, query, query_edge or genders contradict the facts
  in train           clauses, sentences about several people, and stories of the train files
  in other tests     stories that an earlier test file has

For relations other than kinship, the implied ones are those that path consistency leaves for the
query pair, and facts that contradict each other are wrong. Without stories, `twice`, `in train` and
`in other tests` count graphs, and columns about the text are left out.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from generator import contradictions
from generator.checks import content, has_gender_of_target
from generator.data_sets import Table, data_sets
from generator.errors import InputError, Parser, plain_text
from generator.files import write_text
from generator.implied import implied, otherwise
from generator.named import find_data
from generator.relations.kinship import (
    GENDER_NAMES,
    GENDER_OF,
    KINSHIP,
    RELATIONS,
    UNKNOWN_GENDER,
)
from generator.stories.text import NAME, SENTENCE
from generator.tables.readers import SUFFIXES
from generator.tables.rows import Row

_CHUNK = 2048
_LISTED = 5  # rows of each kind that are described


@dataclass
class Seen:
    """Clauses, sentences and stories in the train files of a data set, and its test stories."""

    clauses: set[str] = field(default_factory=set)
    sentences: set[str] = field(default_factory=set)
    stories: set[int] = field(default_factory=set)
    tests: dict[int, str] = field(default_factory=dict)  # story -> first test file with it


@dataclass
class Findings:
    """Results of the audit of one file. A graph has its facts in place of a story."""

    split: str
    kinship: bool
    rows: int = 0
    unique: int = 0
    ambiguous: int = 0
    wrong: int = 0
    unchecked: int = 0  # labels of rows without facts
    readings: Counter[str] = field(default_factory=Counter)  # implied relations of ambiguous rows
    mistakes: list[str] = field(default_factory=list)  # descriptions of the first wrong rows
    duplicates: int = 0  # stories that occur earlier in the file
    unnamed: int = 0  # rows with a person in `genders` who is not in the story
    disagreeing: int = 0  # rows with a column that contradicts the facts
    doubts: list[str] = field(default_factory=list)  # the first unnamed and disagreeing rows
    labels: Counter[tuple[str, str]] = field(default_factory=Counter)  # (label, cell T.K)
    clauses: set[str] = field(default_factory=set)
    # Overlap of a test file with the train files.
    shared_clauses: set[str] = field(default_factory=set)
    sentences: int = 0  # sentences with two people or more
    shared_sentences: int = 0
    shared_stories: int = 0
    copies: Counter[str] = field(default_factory=Counter)  # stories that earlier test files have


def audit(table: Table, seen: Seen) -> Findings:
    """Audits one file. The content of a train or test file is added to `seen`."""
    result = Findings(table.split, table.rows[0].algebra == KINSHIP)
    starts = range(0, len(table.rows), _CHUNK)
    for start in tqdm(starts, table.name, leave=False, disable=None, unit=" chunks"):
        rows = table.rows[start : start + _CHUNK]
        follows = implied(rows)
        wrong = [row for row, found in zip(rows, follows, strict=True) if row.target not in found]
        misread = {
            row.row_index: reading for row, reading in zip(wrong, otherwise(wrong), strict=True)
        }
        for row, relations in zip(rows, follows, strict=True):
            _judge(row, relations, misread.get(row.row_index, ""), result)
            _doubt(row, result)
    _compare(table, seen, result)
    return result


def _judge(row: Row, relations: list[int], misread: str, result: Findings) -> None:
    names = row.algebra.relations
    label = names[row.target] if row.target >= 0 else "no label"
    result.rows += 1
    result.labels[label, f"{row.noise}.{row.k}"] += 1
    if not row.relations and row.target >= 0 and has_gender_of_target(row):
        result.unchecked += 1
        return
    if row.target in relations:
        result.unique += len(relations) == 1
        result.ambiguous += len(relations) > 1
        if len(relations) > 1:
            result.readings[" or ".join(sorted(names[r] for r in relations))] += 1
        return
    result.wrong += 1
    if len(result.mistakes) < _LISTED:
        x, y = (row.names[element] for element in row.query)
        found = " or ".join(names[r] for r in relations)
        if result.kinship:
            said = f"{y} is said to be the {label} of {x}" if row.target >= 0 else label
            if row.relations:
                said += f"; {found or 'nothing'} follows from {row.clause or 'the facts'}"
            if not has_gender_of_target(row):
                said += f"; {y} is {GENDER_NAMES[row.genders[row.query[1]]]} by facts or genders"
        else:
            said = f"({x}, {y}) is said to be {label}; "
            said += f"{found} is possible" if found else "the facts contradict each other"
        if misread:
            said += f"; the label follows if {misread}"
        result.mistakes.append(f"row {row.row_index}: {said}")


def _doubt(row: Row, result: Findings) -> None:
    """Counts columns that contradict the facts, and people whom the story does not name."""
    contradiction = _contradiction(row)
    unnamed = [name for name in row.names if row.story and f"[{name}]" not in row.story]
    result.disagreeing += bool(contradiction)
    result.unnamed += bool(unnamed)
    doubts = [contradiction] if contradiction else []
    doubts += [f"the story does not name {name}" for name in unnamed[:1]]
    if len(result.doubts) < _LISTED:
        result.doubts += [f"row {row.row_index}: {text}" for text in doubts]


def _contradiction(row: Row) -> str:
    """Returns which column contradicts what, the first one, or an empty string."""
    x, y = row.query
    facts = zip(row.edges, row.relations, strict=False)
    length = "task_name" if row.noise and row.algebra == KINSHIP else "k"
    agrees = {
        f"{length} contradicts the facts": _has_path_of_length_k(row),
        "query contradicts query_edge": row.query_names == (row.names[x], row.names[y]),
    }
    if row.algebra == KINSHIP:
        clause = "-".join(RELATIONS[r] for r in row.relations[: row.k])
        agrees |= {
            "f_comb contradicts the facts": row.clause == clause,
            "genders contradicts the facts": all(
                row.genders[person] in (GENDER_OF[r], UNKNOWN_GENDER) for (_, person), r in facts
            ),
        }
    return next((text for text, is_so in agrees.items() if not is_so), "")


def _has_path_of_length_k(row: Row) -> bool:
    """Returns whether k facts connect the people of the query.

    If facts form a cycle, only released rows are judged, whose first k facts are the path.
    """
    if not row.k:
        return True
    length = only_path(row)
    if length is None and row.noise and row.algebra == KINSHIP:
        path = row.edges[: row.k]
        return len(path) == row.k and row.query == (path[0][0], path[-1][1])
    return length in (None, row.k)


def only_path(row: Row) -> int | None:
    """Returns the number of facts between the people of the query, whatever their direction; None
    if no facts connect these people, or facts about them form a cycle."""
    x, y = row.query
    distance, waiting, ends = {x: 0}, [x], 0
    while waiting:
        person = waiting.pop()
        for one, other in (*row.edges, *((b, a) for a, b in row.edges)):
            if one == person:
                ends += 1
                if other not in distance:
                    distance[other] = distance[person] + 1
                    waiting.append(other)
    is_tree = ends == 2 * (len(distance) - 1)
    return distance.get(y) if is_tree else None


def _compare(table: Table, seen: Seen, result: Findings) -> None:
    """Counts duplicates within the file, and the overlap of a test file with the others."""
    stories = [_content(row) for row in table.rows]
    result.duplicates = len(stories) - len(set(stories))
    result.clauses = {row.clause for row in table.rows}
    sentences = [set(_forms(row.story)) for row in table.rows]
    if table.split == "train":
        seen.clauses |= result.clauses
        seen.stories.update(stories)
        seen.sentences.update(*sentences)
        return
    result.shared_clauses = result.clauses & seen.clauses
    result.shared_stories = sum(story in seen.stories for story in stories)
    result.sentences = sum(map(len, sentences))
    result.shared_sentences = sum(len(forms & seen.sentences) for forms in sentences)
    if table.split == "test":
        files = [seen.tests.setdefault(story, table.name) for story in stories]
        result.copies.update(file for file in files if file != table.name)


def _content(row: Row) -> int:
    words = (*(row.algebra.relations[r] for r in row.relations), *[""] * len(row.edges))
    facts = [(row.names[x], word, row.names[y]) for (x, y), word in zip(row.edges, words)]  # noqa: B905
    said, stated = content(row.story, facts, row.query_names)
    return stated if said is None else said


def _forms(story: str) -> Iterator[str]:
    """Sentences that name two or more people, with indices in place of the names."""
    for sentence in SENTENCE.split(story):
        index: dict[str, int] = {}
        text = NAME.sub(lambda m: f"[{index.setdefault(m[1], len(index))}]", sentence)  # noqa: B023
        if len(index) > 1:
            yield text


def report(name: str, found: dict[str, Findings]) -> str:
    """Formats the findings for the files of one data set."""
    table: list[dict[str, object]] = []
    notes = []
    for file, f in found.items():
        cells: dict[str, object] = {
            "file": file, "rows": f.rows, "unique": f.unique, "ambiguous": f.ambiguous,
            "wrong": f.wrong, "twice": f.duplicates,
        }  # fmt: skip
        if f.kinship:
            cells |= {"unnamed": f.unnamed, "disagree": f.disagreeing, "clauses": len(f.clauses)}
            shared: dict[str, object] = {
                "in train": len(f.shared_clauses),
                "sentences in train": f"{f.shared_sentences} of {f.sentences}",
                "stories in train": f.shared_stories,
                "in other tests": f.copies.total(),
            }
        else:
            shared = {"in train": f.shared_stories, "in other tests": f.copies.total()}
        table.append(cells | (dict.fromkeys(shared, "") if f.split == "train" else shared))
        notes += [
            f"  {file}: {count} ambiguous: {text}" for text, count in f.readings.most_common()
        ]
        notes += [
            f"  {file}: stories that are also in {other}: {count}"
            for other, count in f.copies.items()
        ]
        if f.unchecked:
            notes.append(f"  {file}: without facts, so that labels are not checked: {f.unchecked}")
        notes += [f"  {file}: WRONG: {text}" for text in f.mistakes]
        notes += [f"  {file}: {text}" for text in f.doubts]
    lines = [[*table[0]], *([str(cell) for cell in row.values()] for row in table)]
    splits = dict.fromkeys(f.split for f in found.values())
    labels = [_labels(split, [f for f in found.values() if f.split == split]) for split in splits]
    return "\n".join([name, plain_text(lines), *notes, "", "\n\n".join(labels), ""])


def _labels(split: str, found: list[Findings]) -> str:
    """A table with the frequency of each label in the files of one split, by cell T.K."""
    labels = sum((f.labels for f in found), Counter())
    columns = list(dict.fromkeys(cell for _, cell in labels))
    rows = [
        (label, *(str(labels[label, cell] or "") for cell in columns))
        for label in sorted({label for label, _ in labels})
    ]
    return plain_text([(f"label, {split}", *columns), *rows])


def main(argv: list[str], prog: str = "python -m generator audit") -> int:
    """Audits files and prints the findings. Returns 1 if a label is wrong, else 0."""
    parser = Parser(prog=prog, description=__doc__)
    parser.add_argument("files", nargs="+", metavar="FILE",
                        help=f"a .zip, a folder, a {', '.join(SUFFIXES)} file, or a name such as "
                        "clutrr-v1/gen23")  # fmt: skip
    parser.add_argument("--text", action="store_true",
                        help="instead find the sentences that contradict the facts of their "
                        "story: kinship")  # fmt: skip
    parser.add_argument("--clean", type=Path, metavar="FILE",
                        help="with --text, write the ids of the test stories without such a "
                        "sentence, for --ids of score and report")  # fmt: skip
    options = parser.parse_args(argv)
    if options.clean and not options.text:
        parser.error("--clean: expected --text as well")
    files = [find_data(file) for file in options.files]
    if options.text:
        return _audit_text(files, options.clean)
    wrong = rows = 0
    for name, tables in data_sets(files):
        for algebra in dict.fromkeys(table.rows[0].algebra.name for table in tables):
            seen = Seen()
            found = {table.name: audit(table, seen) for table in tables
                     if table.rows[0].algebra.name == algebra}  # fmt: skip
            print(report(name, found), flush=True)
            wrong += sum(f.wrong for f in found.values())
            rows += sum(f.rows for f in found.values())
    print(f"{rows} rows, {wrong} wrong labels")
    return 1 if wrong else 0


def _audit_text(files: list[Path], clean: Path | None) -> int:
    """Prints the sentences that contradict facts, and writes the ids of test stories without."""
    ids: list[str] = []
    sets = data_sets(files)
    every = [*sets] if clean else []
    if len(every) > 1:
        raise InputError(f"--clean {clean}: {len(every)} data sets, expected one, whose ids it has")
    for name, tables in every or sets:
        if any(table.rows[0].algebra != KINSHIP for table in tables):
            raise InputError(f"{name}: relations without sentences, expected kinship")
        text, found = contradictions.report(name, tables)
        print(text, flush=True)
        ids += found
    print(contradictions.SURE)
    if clean:
        write_text(clean, "".join(f"{id}\n" for id in ids))
    return 0
