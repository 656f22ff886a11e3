"""Extracts a bank of paraphrases from stories.

The clean text of a released story is a sequence of paraphrases in the order of the path, each
stating the next one or more facts. The boundaries between paraphrases are unknown. They are found
by two properties of a paraphrase: it names exactly the people of its facts, and it recurs in other
stories with other names. Paraphrases that do not recur are discarded. The bank is for `--bank`.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple

from generator.data_sets import data_sets
from generator.errors import InputError, Parser, at
from generator.paraphrases.load import save_bank
from generator.relations.kinship import GENDER_OF
from generator.stories.text import MAX_PARAPHRASE_FACTS, NAME, Bank, ClauseKey
from generator.tables.rows import Row

# A paraphrase begins at the start of a sentence; the previous one may lack its full stop.
_CUT = re.compile(r"(?<=[.!?\"']) | (?=[A-Z\[])")
_MAX_SEGMENTS = 60  # per paraphrase; bounds the search in texts that are no sequences
_ROUNDS = 3
_SINGLE_COST = 30.0  # of a template that does not recur, in nats

SplitKey = tuple[str, str]  # data set, split


class Story(NamedTuple):
    """A text and the path of k facts that it states."""

    text: str
    people: tuple[str, ...]  # names along the path, [k + 1]
    gender: int  # of the first person
    relations: tuple[int, ...]  # [k]


class Template(NamedTuple):
    """A text with placeholders, and the clause that it states."""

    clause: ClauseKey
    text: str


class Piece(NamedTuple):
    """A run of text segments that names exactly the people of facts first .. last - 1."""

    begin: int  # index of the first segment
    end: int
    first: int
    last: int
    template: Template


def path_story(row: Row) -> Story | None:
    """Returns the clean story of a row; None without text or if its first k facts are no path."""
    edges = row.edges[: row.k]
    path = [edges[0][0], *(b for _, b in edges)]
    if not row.clean_story or any(a != b for (a, _), b in zip(edges, path, strict=False)):
        return None
    names = tuple(row.names[p] for p in path)
    return Story(row.clean_story, names, row.genders[path[0]], row.relations[: row.k])


def candidate_pieces(story: Story) -> tuple[list[Piece], int]:
    """Returns all pieces of one to three facts that a story may consist of, and its number of
    segments."""
    cuts = [0, *(m.start() for m in _CUT.finditer(story.text)), len(story.text)]
    segments = [story.text[a:b] for a, b in pairwise(cuts)]
    named = [frozenset(NAME.findall(segment)) for segment in segments]
    spans = defaultdict(list)  # of facts without repeated people, by the people
    for first, size in product(range(len(story.relations)), range(1, MAX_PARAPHRASE_FACTS + 1)):
        people = frozenset(story.people[first : first + size + 1])
        if len(people) == size + 1:
            spans[people].append((first, first + size))
    pieces = []
    for begin in range(len(segments)):
        people = frozenset()
        for end in range(begin + 1, min(begin + _MAX_SEGMENTS, len(segments)) + 1):
            people |= named[end - 1]
            if len(people) > MAX_PARAPHRASE_FACTS + 1:
                break
            for first, last in spans.get(people, ()):
                text = "".join(segments[begin:end]).strip()
                pieces.append(Piece(begin, end, first, last, _template(story, first, last, text)))
    return pieces, len(segments)


def _template(story: Story, first: int, last: int, text: str) -> Template:
    placeholder = {name: f"{{{i}}}" for i, name in enumerate(story.people[first : last + 1])}
    gender = int(GENDER_OF[story.relations[first - 1]]) if first else story.gender
    clause = gender, story.relations[first:last]
    return Template(clause, NAME.sub(lambda name: placeholder[name[1]], text))


def cut(stories: Sequence[Story]) -> tuple[list[list[Template] | None], Mapping[Template, int]]:
    """Cuts stories into paraphrases.

    Returns the templates of each story, or None if one of them does not recur; and the number of
    different names for each template that recurs.
    """
    candidates = [candidate_pieces(story) for story in stories]
    count = _count_names(stories, [pieces for pieces, _ in candidates])
    count = _without_compounds(candidates, count)
    for _ in range(_ROUNDS):
        totals: Counter[ClauseKey] = Counter()
        for template, n in count.items():
            totals[template.clause] += n
        # Negative log-likelihood of a template given its clause, from leave-one-out counts.
        cost = {
            template: math.log(totals[template.clause] / (n - 1)) if n > 1 else _SINGLE_COST
            for template, n in count.items()
        }
        chosen = [
            _cheapest(pieces, (0, 0), (num_segments, len(story.relations)), cost)
            for story, (pieces, num_segments) in zip(stories, candidates, strict=True)
        ]
        count = _count_names(stories, chosen)
    complete = [
        [piece.template for piece in pieces]
        if pieces and all(count[piece.template] > 1 for piece in pieces)
        else None
        for pieces in chosen
    ]
    return complete, {template: n for template, n in count.items() if n > 1}


def _count_names(
    stories: Sequence[Story], pieces_of: Sequence[Sequence[Piece]]
) -> dict[Template, int]:
    """Number of different names with which each template occurs."""
    names: defaultdict[Template, set[tuple[str, ...]]] = defaultdict(set)
    for story, pieces in zip(stories, pieces_of, strict=True):
        for piece in pieces:
            names[piece.template].add(story.people[piece.first : piece.last + 1])
    return {template: len(found) for template, found in names.items()}


def _cheapest(
    pieces: Iterable[Piece],
    start: tuple[int, int],
    goal: tuple[int, int],
    cost: Mapping[Template, float],
) -> Sequence[Piece]:
    """The cheapest chain of pieces between two (segment, fact) positions; empty if none exists."""
    best: dict[tuple[int, int], tuple[float, Sequence[Piece]]] = {start: (0.0, ())}
    for piece in sorted(pieces, key=lambda piece: piece.begin):
        so_far = best.get((piece.begin, piece.first))
        if so_far:
            total = so_far[0] + cost.get(piece.template, _SINGLE_COST)
            reached = piece.end, piece.last
            if reached not in best or total < best[reached][0]:
                best[reached] = total, (*so_far[1], piece)
    return best[goal][1] if goal in best else ()


def _without_compounds(
    candidates: Sequence[tuple[list[Piece], int]], count: Mapping[Template, int]
) -> dict[Template, int]:
    """Drops templates that consist of several shorter ones, which all occur more often."""
    whole_pieces: dict[Template, tuple[Piece, list[Piece]]] = {}  # first occurrences
    for pieces, _ in candidates:
        for piece in pieces:
            whole_pieces.setdefault(piece.template, (piece, pieces))
    compounds = set()
    for template, (whole, pieces) in whole_pieces.items():
        n = count[template]
        if n > 1 and whole.last - whole.first > 1:
            parts = [
                piece
                for piece in pieces
                if whole.begin <= piece.begin
                and piece.end <= whole.end
                and count[piece.template] > n
            ]
            if _cheapest(parts, (whole.begin, whole.first), (whole.end, whole.last), {}):
                compounds.add(template)
    return {template: n for template, n in count.items() if template not in compounds}


def read_stories(paths: Sequence[Path]) -> dict[SplitKey, list[Story]]:
    """Reads the clean stories of files, by data set and split."""
    stories: defaultdict[SplitKey, list[Story]] = defaultdict(list)
    for name, tables in data_sets(list(paths)):
        for table in tables:
            for row in table.rows:
                story = path_story(row)
                if story is None or "{" in story.text or "}" in story.text:
                    place = at(f"{name}: {table.name}", row.row_index)
                    raise InputError(
                        f"{place}: expected a clean_story without braces, and story_edges whose "
                        f"first {row.k} form a path"
                    )
                stories[name, table.split].append(story)
    return stories


def import_bank(paths: Sequence[Path], name: str) -> tuple[Bank, dict[SplitKey, list[bool]]]:
    """Extracts a bank from released stories. Also returns whether each story consists of recurring
    paraphrases, by data set and split."""
    stories = read_stories(paths)
    complete, count = cut([story for part in stories.values() for story in part])
    if not count:
        raise InputError(
            f"{', '.join(map(str, paths))}: no paraphrase recurs with other names; "
            "more stories are needed"
        )
    rest = iter(complete)
    covered = {key: [next(rest) is not None for _ in part] for key, part in stories.items()}
    templates: defaultdict[ClauseKey, tuple[str, ...]] = defaultdict(tuple)
    for clause, text in sorted(count):
        templates[clause] += (text,)
    return Bank(name, dict(templates)), covered


def main(argv: list[str]) -> int:
    """Runs `import-paraphrases FILES --out bank.json`."""
    parser = Parser(prog="python -m generator import-paraphrases", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help=".zip, .csv or folder")
    parser.add_argument("--out", type=Path, required=True, metavar="BANK.json",
                        help="file to write")  # fmt: skip
    arguments = parser.parse_args(argv)
    bank, covered = import_bank(arguments.files, arguments.out.stem)
    save_bank(bank, arguments.out)
    print("stories that consist of recurring paraphrases")
    by_split: defaultdict[str, list[bool]] = defaultdict(list)
    for (name, split), part in covered.items():
        by_split[split] += part
        percent = f"{100 * sum(part) / len(part):5.1f} %"
        print(f"  {Path(name).name} {split:5} {sum(part):7,} of {len(part):7,}  {percent}")
    for split, part in sorted(by_split.items(), reverse=True):
        percent = f"{100 * sum(part) / len(part):.1f} %"
        print(f"  all {split}: {sum(part):,} of {len(part):,}, {percent}")
    print(f"paraphrases, written to {arguments.out}")
    for length in range(1, MAX_PARAPHRASE_FACTS + 1):
        pools = [texts for key, texts in bank.templates.items() if len(key[1]) == length]
        print(f"  k = {length}: {sum(map(len, pools)):,} paraphrases of {len(pools)} clauses")
    return 0
