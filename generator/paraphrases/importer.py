"""`python -m generator import-paraphrases FILES --out bank.json`: a bank from released stories.

The clean text of a story is a chain of paraphrases, in the order of the path: the first states the
first one or more facts, the next goes on where it ended. Where one ends and the next begins is
found by two things: a paraphrase names the people of its facts and no others, and it comes back in
other stories with other names. A paraphrase that comes back nowhere is not taken.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from generator.errors import InputError, Parser, at
from generator.files import write_text
from generator.kinship import GENDER_OF
from generator.tables import Row, data_sets
from generator.text import MAX_PIECE, Bank, ClauseKey, clause_name

_NAME = re.compile(r"\[([^\[\]]*)\]")
# A paraphrase begins at the start of a sentence; some sentences before lack their full stop.
_CUT = re.compile(r"(?<=[.!?\"']) | (?=[A-Z\[])")
_MAX_CUTS = 60  # within a paraphrase, of stories that were not written to be cut
_ROUNDS = 3
_UNSEEN = 30.0  # what a template costs that comes back nowhere, in nats


class Story(NamedTuple):
    """A text and the path of facts that it tells."""

    text: str
    people: tuple[str, ...]  # names along the path, [k + 1]
    gender: int  # of the first person
    relations: tuple[int, ...]  # [k]


class Template(NamedTuple):
    """A text with placeholders, and the clause that it states."""

    clause: ClauseKey
    text: str


class Piece(NamedTuple):
    """A stretch of a story that names the people of the facts first .. last - 1 and no others."""

    begin: int  # number of the cut where it starts, 0: the start of the text
    end: int
    first: int
    last: int
    template: Template


Pieces = Sequence[Piece]


def path_story(row: Row) -> Story | None:
    """The clean story of a row; None where its first k facts are no path, or it has no text."""
    edges = row.edges[: row.k]
    path = [edges[0][0], *(b for _, b in edges)]
    if not row.clean_story or any(a != b for (a, _), b in zip(edges, path, strict=False)):
        return None
    names = tuple(row.names[p] for p in path)
    return Story(row.clean_story, names, row.genders[path[0]], row.relations[: row.k])


def pieces(story: Story) -> tuple[list[Piece], int]:
    """All pieces of one to three facts that a story could be made of, and the number of its end."""
    cuts = [0, *(m.start() for m in _CUT.finditer(story.text)), len(story.text)]
    segments = [story.text[a:b] for a, b in pairwise(cuts)]
    named = [frozenset(_NAME.findall(segment)) for segment in segments]
    facts = len(story.relations)
    spans = defaultdict(list)
    for first in range(facts):
        for last in range(first + 1, min(facts, first + MAX_PIECE) + 1):
            told = frozenset(story.people[first : last + 1])
            if len(told) == last - first + 1:  # nobody twice
                spans[told].append((first, last))
    found = []
    for begin in range(len(segments)):
        people: frozenset[str] = frozenset()
        for end in range(begin + 1, min(begin + _MAX_CUTS, len(segments)) + 1):
            people |= named[end - 1]
            if len(people) > MAX_PIECE + 1:
                break
            for first, last in spans.get(people, ()):
                text = "".join(segments[begin:end]).strip()
                template = _template(story, first, last, text)
                found.append(Piece(begin, end, first, last, template))
    return found, len(segments)


def _template(story: Story, first: int, last: int, text: str) -> Template:
    place = {name: f"{{{i}}}" for i, name in enumerate(story.people[first : last + 1])}
    gender = int(GENDER_OF[story.relations[first - 1]]) if first else story.gender
    clause = gender, story.relations[first:last]
    return Template(clause, _NAME.sub(lambda name: place[name[1]], text))


def cut(stories: Sequence[Story]) -> tuple[list[list[Template] | None], Mapping[Template, int]]:
    """Cuts stories into paraphrases.

    Returns:
      For each story the templates that it consists of, or None where a piece of it comes back in no
      other story; and each template that comes back, with the number of stories (of different
      names) it was found in.
    """
    candidates = [pieces(story) for story in stories]
    people: defaultdict[Template, set[tuple[str, ...]]] = defaultdict(set)
    for story, (found, _) in zip(stories, candidates, strict=True):
        for piece in found:
            people[piece.template].add(story.people[piece.first : piece.last + 1])
    seen = {template: len(names) for template, names in people.items()}
    seen = _without_compounds(candidates, seen)
    for _ in range(_ROUNDS):
        chosen, seen = _round(stories, candidates, seen)
    whole = [
        [p.template for p in path] if path and all(seen[p.template] > 1 for p in path) else None
        for path in chosen
    ]
    return whole, {template: n for template, n in seen.items() if n > 1}


def _round(
    stories: Sequence[Story],
    candidates: Sequence[tuple[list[Piece], int]],
    seen: Mapping[Template, int],
) -> tuple[list[Pieces], dict[Template, int]]:
    """The likeliest pieces of each story, and in how many stories each template then is."""
    totals: Counter[ClauseKey] = Counter()
    for template, n in seen.items():
        totals[template.clause] += n

    def cost(template: Template) -> float:
        n = seen.get(template, 0)
        return math.log(totals[template.clause] / (n - 1)) if n > 1 else _UNSEEN

    chosen = []
    people: defaultdict[Template, set[tuple[str, ...]]] = defaultdict(set)
    for story, (found, end) in zip(stories, candidates, strict=True):
        path = _cheapest(found, (0, 0), (end, len(story.relations)), cost)
        for piece in path:
            people[piece.template].add(story.people[piece.first : piece.last + 1])
        chosen.append(path)
    return chosen, {template: len(names) for template, names in people.items()}


def _cheapest(
    found: Iterable[Piece],
    start: tuple[int, int],
    goal: tuple[int, int],
    cost: Callable[[Template], float],
) -> Pieces:
    """The cheapest chain of pieces from (cut, fact) to (cut, fact); empty where there is none."""
    best: dict[tuple[int, int], tuple[float, Pieces]] = {start: (0.0, ())}
    for piece in sorted(found, key=lambda piece: piece.begin):
        so_far = best.get((piece.begin, piece.first))
        if so_far:
            total = so_far[0] + cost(piece.template)
            reached = piece.end, piece.last
            if reached not in best or total < best[reached][0]:
                best[reached] = total, (*so_far[1], piece)
    return best[goal][1] if goal in best else ()


def _without_compounds(
    candidates: Sequence[tuple[list[Piece], int]], seen: Mapping[Template, int]
) -> dict[Template, int]:
    """Drops templates that are shorter ones side by side: each is found more often than the two."""
    checked: set[Template] = set()
    compounds = set()
    for found, _ in candidates:
        for whole in found:
            times = seen[whole.template]
            if times == 1 or whole.last - whole.first == 1 or whole.template in checked:
                continue
            checked.add(whole.template)
            parts = (
                piece
                for piece in found
                if whole.begin <= piece.begin
                and piece.end <= whole.end
                and seen[piece.template] > times
            )
            start, goal = (whole.begin, whole.first), (whole.end, whole.last)
            if _cheapest(parts, start, goal, lambda _: 1.0):
                compounds.add(whole.template)
    return {template: n for template, n in seen.items() if template not in compounds}


def read_stories(paths: Sequence[Path]) -> dict[tuple[str, str], list[Story]]:
    """The clean stories of the files named, by data set and split.

    Raises:
      InputError: a file is missing or malformed, or a text holds braces.
    """
    stories: defaultdict[tuple[str, str], list[Story]] = defaultdict(list)
    for name, tables in data_sets(list(paths)).items():
        for table in tables:
            for number, row in enumerate(table.rows(), 1):
                story = path_story(row)
                if story is None or "{" in story.text or "}" in story.text:
                    raise InputError(
                        f"{at(f'{name}: {table.name}', number)}: expected a clean_story without "
                        f"braces, and story_edges whose first {row.k} are a path"
                    )
                stories[name, table.split].append(story)
    return stories


def imported(
    paths: Sequence[Path], name: str
) -> tuple[Bank, dict[tuple[str, str], tuple[int, int]]]:
    """The bank of released stories.

    Returns:
      The bank, and by data set and split how many stories it explains whole, of how many.

    Raises:
      InputError: a file cannot be read, or no paraphrase comes back.
    """
    stories = read_stories(paths)
    whole, seen = cut([story for part in stories.values() for story in part])
    if not seen:
        raise InputError(
            f"{', '.join(map(str, paths))}: no paraphrase comes back with other names; "
            "more stories are needed"
        )
    counts = {}
    rest = iter(whole)
    for part, told in stories.items():
        explained = sum(next(rest) is not None for _ in told)
        counts[part] = explained, len(told)
    templates: defaultdict[ClauseKey, list[str]] = defaultdict(list)
    for clause, text in sorted(seen):
        templates[clause].append(text)
    bank = Bank(name, {clause: tuple(texts) for clause, texts in templates.items()})
    return bank, counts


def save_bank(bank: Bank, path: Path) -> None:
    """Writes a bank for `banks.read_bank`, whole or not at all. Raises InputError."""
    templates = {clause_name(key): texts for key, texts in sorted(bank.templates.items())}
    write_text(path, json.dumps({"name": bank.name, "templates": templates}, indent=1) + "\n")


def main(argv: list[str]) -> int:
    """`import-paraphrases FILES --out bank.json`: writes the bank and prints what it explains."""
    parser = Parser(
        prog="python -m generator import-paraphrases",
        description="Cuts the clean stories of CLUTRR files into the paraphrases they were joined "
        "from, and writes these as a bank for --bank.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help=".zip, .csv or folder")
    parser.add_argument("--out", type=Path, required=True, metavar="BANK.json")
    arguments = parser.parse_args(argv)
    if not arguments.out.parent.is_dir():
        raise InputError(f"{arguments.out}: there is no folder {arguments.out.parent}")
    bank, counts = imported(arguments.files, arguments.out.stem)
    save_bank(bank, arguments.out)
    print("stories that consist of paraphrases that come back in other stories")
    for (name, split), (explained, total) in counts.items():
        percent = 100 * explained / total
        print(f"  {Path(name).name} {split:5} {explained:7,} of {total:7,}  {percent:5.1f} %")
    for split in sorted({split for _, split in counts}, reverse=True):
        explained, total = (
            sum(count[i] for (_, s), count in counts.items() if s == split) for i in (0, 1)
        )
        percent = 100 * explained / total
        print(f"  all {split}: {explained:,} of {total:,}, {percent:.1f} %")
    print(f"templates, written to {arguments.out}")
    for length in range(1, MAX_PIECE + 1):
        found = [texts for (_, relations), texts in bank.templates.items()
                 if len(relations) == length]  # fmt: skip
        print(f"  k = {length}: {sum(map(len, found)):,} templates of {len(found)} clauses")
    return 0
