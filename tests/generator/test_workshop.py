"""Laws of the benchmark of 2018, checked against people, parents and partners spelled out here."""

import ast
import csv
import itertools
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.errors import InputError
from generator.kinship import PREDICATE_OF, PREDICATES, RELATION_ID, RELATIONS, RULES
from generator.workshop import command, paths, rules, text

MEN = {
    "father", "son", "husband", "grandfather", "grandson", "brother", "father-in-law", "son-in-law",
}  # fmt: skip


class People:
    """A family tree, and what its people are to each other by the meaning of the words alone."""

    def __init__(self) -> None:
        self.parents: list[set[int]] = []
        self.partner: dict[int, int] = {}

    def born(self, *parents: int) -> int:
        self.parents.append(set(parents))
        return len(self.parents) - 1

    def marry(self, a: int, b: int) -> None:
        self.partner |= {a: b, b: a}

    def grandparents(self, a: int) -> set[int]:
        return set().union(*(self.parents[p] for p in self.parents[a]))

    def downward(self, x: int, y: int) -> str | None:
        """What Y is to X, X before Y in the direction of the paper's edges."""
        if self.partner.get(x) == y:
            return "SO"
        if x in self.parents[y]:
            return "child"
        if x in self.grandparents(y):
            return "grand"
        if y in self.partner and x in self.parents[self.partner[y]]:
            return "in-law"
        if self.parents[x] and self.parents[x] == self.parents[y]:
            return "sibling"
        return None

    def relation(self, x: int, y: int) -> str | None:
        downward = self.downward(x, y)
        if downward is None and (upward := self.downward(y, x)):
            return f"inv-{upward}"
        return downward

    def simple_paths(self, facts: int, married_siblings: bool):
        """Every simple path: its people, its clause, and what its last person is to the first."""
        edges = defaultdict(dict)
        for x, y in itertools.permutations(range(len(self.parents)), 2):
            name = self.relation(x, y)
            if name and (name != "sibling" or married_siblings or not {x, y} & {*self.partner}):
                edges[x][y] = name

        def walk(path: tuple[int, ...], clause: tuple[str, ...]):
            if len(clause) == facts:
                yield path, clause, edges[path[0]].get(path[-1])
                return
            for y, name in edges[path[-1]].items():
                if y not in path:
                    yield from walk((*path, y), (*clause, name))

        for x in range(len(self.parents)):
            yield from walk((x,), ())


def two_families() -> People:
    """Two couples whose children marry: every grandchild has four grandparents."""
    tree = People()
    couples = [(tree.born(), tree.born()) for _ in range(2)]
    for couple in couples:
        tree.marry(*couple)
    (a, b), (c, d) = ([tree.born(*couple) for _ in range(2)] for couple in couples)
    tree.marry(a, c)
    tree.marry(b, tree.born())
    kids = [tree.born(*pair) for pair in ((a, c), (b, tree.partner[b])) for _ in range(2)]
    tree.marry(kids[0], tree.born())
    for _ in range(2):
        tree.born(kids[0], tree.partner[kids[0]])
    tree.marry(d, tree.born())
    return tree


def family_2018(l_max: int, children) -> People:
    """Algorithm 1; `children()` says how many a couple has."""
    tree = People()
    level = [tree.born()]
    for _ in range(l_max):
        couples = [(p, tree.born()) for p in level]
        for couple in couples:
            tree.marry(*couple)
        level = [tree.born(*couple) for couple in couples for _ in range(children())]
    return tree


def names(clause) -> tuple[str, ...]:
    return tuple(PREDICATES[p] for p in clause)


@pytest.mark.parametrize(
    ("people", "paths"), [(3, 20), (4, 84), (5, 305), (6, 978), (7, 2814)]
)  # fmt: skip
def test_table_2(people, paths):
    assert paths.count_paths(3, 3, people) == paths


def test_count_paths_prints_table_2(capsys):
    assert command.main(["--count-paths"]) == 0
    table = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert table == [
        ["3", "20", "40"], ["4", "84", "168"], ["5", "305", "610"],
        ["6", "978", "1956"], ["7", "2814", "5628"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("l_max", "c_min", "c_max", "facts"),
    [
        (1, 2, 2, 3),
        (1, 1, 3, 2),
        (2, 2, 2, 4),
        (2, 1, 2, 3),
        (2, 3, 3, 3),
        (3, 1, 1, 5),
        (2, 0, 2, 2),
    ],
)
def test_weights_are_the_mean_counts_of_a_plain_search(l_max, c_min, c_max, facts):
    """Over all families, each number of children being as likely for each couple."""
    expected = Counter()
    sizes = range(c_min, c_max + 1)
    couples = sum(c_max**level for level in range(l_max))
    families = list(itertools.product(sizes, repeat=couples))
    for family in families:
        sizes_left = iter(family)
        # A couple that is not there leaves its number unused: all families stay as likely.
        tree = family_2018(l_max, lambda left=sizes_left: next(left))
        for _, clause, answer in tree.simple_paths(facts, married_siblings=False):
            if answer:
                expected[clause, answer] += 1
    members = paths.family(l_max, min(c_max, facts + 1))
    found_paths = paths.paths_of(members, facts, c_min, c_max, sure=False)
    found = Counter()
    for clause, answer, weight in zip(
        found_paths.clause, found_paths.answer, found_paths.weight, strict=True
    ):
        found[names(clause), PREDICATES[answer]] += weight
    assert found.keys() == expected.keys()
    for key, count in expected.items():
        assert found[key] == pytest.approx(count / len(families))


@pytest.mark.parametrize("facts", [2, 3, 4])
def test_what_is_proved_holds_in_every_family(facts):
    """Also where partners have parents, and with the edge between married siblings."""
    proved = 0
    for tree in (two_families(), family_2018(3, lambda: 2)):
        for _, clause, answer in tree.simple_paths(facts, married_siblings=True):
            proof = rules.prove(tuple(PREDICATES.index(p) for p in clause))
            if proof:
                proved += 1
                assert PREDICATES[proof.head] == answer, clause
    assert proved > 700


def test_the_relations_of_2018():
    assert len(set(rules.RELATIONS_2018)) == 15
    assert RELATION_ID["daughter-in-law"] not in rules.RELATIONS_2018
    used = {PREDICATES[PREDICATE_OF[r]] for r in rules.RELATIONS_2018}
    assert used == set(rules.PREDICATES_2018)


def generate(out: Path, *options: str) -> dict[str, list[dict[str, str]]]:
    small = ["--k", "3,5", "--train-rows", "150", "--test-rows", "40"]
    assert command.main(["--out", str(out), *small, *options]) == 0
    return {path.name: list(csv.DictReader(path.open())) for path in sorted(out.iterdir())}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return generate(tmp_path_factory.mktemp("workshop"))


@pytest.fixture(scope="module")
def stories(files):
    return [row for rows in files.values() for row in rows]


def cell(row, column):
    return ast.literal_eval(row[column])


def people_of(row):
    return dict(pair.split(":") for pair in row["genders"].split(","))


def test_files_and_columns(files):
    assert {name: len(rows) for name, rows in files.items()} == {
        "M3_train.csv": 150, "M3_test.csv": 40, "M5_train.csv": 150, "M5_test.csv": 40,
    }  # fmt: skip
    for name, rows in files.items():
        assert tuple(rows[0]) == command.COLUMNS
        assert [row[""] for row in rows] == [str(i) for i in range(len(rows))]
        assert {row["task_split"] for row in rows} == {name[3:-4]}
        assert {row["task_name"] for row in rows} == {f"task_1.{name[1]}"}
    every = [row for rows in files.values() for row in rows]
    assert len({row["id"] for row in every}) == len(every)
    assert len({row["story"] for row in every}) == len(every)


def test_the_text_states_the_facts_and_nothing_more(stories):
    patterns = [
        re.compile(re.escape(t).replace(r"\{x\}", "(?P<x>.)").replace(r"\{y\}", "(?P<y>.)")
                   .replace(r"\{r\}", "(?P<r>[a-z-]+)"))
        for t in text.FACTS
    ]  # fmt: skip
    for row in stories:
        people = list(people_of(row))
        stated = []
        for sentence in re.findall(r".*?\.(?: |$)", row["clean_story"]):
            (match,) = filter(None, (p.fullmatch(sentence.strip()) for p in patterns))
            stated.append((match["x"], match["r"], match["y"]))
        edges = [(people[i], people[j]) for i, j in cell(row, "story_edges")]
        types = cell(row, "edge_types")
        assert stated == [(x, r, y) for (x, y), r in zip(edges, types, strict=True)]
        assert row["f_comb"] == "-".join(types)
        assert cell(row, "query") == (people[0], people[-1])
        assert all(RELATION_ID[r] in rules.RELATIONS_2018 for r in [*types, row["target"]])
        genders = people_of(row)
        for x, relation, y in [*stated, (people[0], row["target"], people[-1])]:
            assert genders[y] == ("male" if relation in MEN else "female")
            assert relation not in ("husband", "wife") or genders[x] != genders[y]


def test_the_label_holds_wherever_the_facts_do(stories):
    """Over every simple path with these facts, in trees of which the generator knows nothing."""
    clauses = {cell_clause(row) for row in stories}
    trees = [answers_of(tree, clauses) for tree in (two_families(), family_2018(3, lambda: 3))]
    for row in stories:
        readings = set().union(*(tree[cell_clause(row)] for tree in trees))
        assert readings == {PREDICATES[PREDICATE_OF[RELATION_ID[row["target"]]]]}


def cell_clause(row):
    return names(PREDICATE_OF[RELATION_ID[r]] for r in cell(row, "edge_types"))


def answers_of(tree: People, clauses) -> dict[tuple[str, ...], set[str | None]]:
    """What the ends of the simple paths of each clause are to each other."""
    everyone = range(len(tree.parents))
    edges = defaultdict(list)
    for x, y in itertools.permutations(everyone, 2):
        edges[x, tree.relation(x, y)].append(y)
    found = {}
    for clause in clauses:
        paths = [(x,) for x in everyone]
        for predicate in clause:
            paths = [
                (*path, y) for path in paths for y in edges[path[-1], predicate] if y not in path
            ]
        found[clause] = {tree.relation(path[0], path[-1]) for path in paths}
    return found


def test_the_rules_of_2019_prove_no_other_label(stories):
    for row in stories:
        clause = cell_clause(row)
        proved = {(i, i + 1): {p} for i, p in enumerate(clause)}
        for size in range(2, len(clause) + 1):
            for i in range(len(clause) - size + 1):
                proved[i, i + size] = {
                    RULES[pair]
                    for m in range(i + 1, i + size)
                    for pair in itertools.product(proved[i, m], proved[m, i + size])
                    if pair in RULES
                }
        label = PREDICATES[PREDICATE_OF[RELATION_ID[row["target"]]]]
        assert proved[0, len(clause)] <= {label}


def test_proofs_go_from_the_label_down_to_the_facts(stories):
    for row in stories:
        people = list(people_of(row))
        facts = {
            (people[i], r, people[i + 1]) for i, r in enumerate(cell(row, "edge_types"))
        }  # fmt: skip
        steps = [item for step in cell(row, "proof_state") for item in step.items()]
        assert steps[0][0] == (people[0], row["target"], people[-1])
        open_goals = {steps[0][0]}
        for goal, (first, second) in steps:
            assert goal in open_goals
            assert (goal[0], goal[2]) == (first[0], second[2]) and first[2] == second[0]
            assert people_of(row)[goal[2]] == ("male" if goal[1] in MEN else "female")
            open_goals = open_goals - {goal} | {first, second}
        assert open_goals == facts


def test_distractors_say_nothing_of_kinship(stories):
    kin = re.compile("|".join(sorted(RELATIONS, key=len, reverse=True)) + "|parent|sibling|married")
    sentences = {s: kind for kind, group in text.DISTRACTORS.items() for s in group}
    assert len(text.KINDS) == 8
    for sentence in sentences:
        assert not kin.search(sentence.lower())
        assert sentence.count("[{}]") == 1 and sentence.endswith(".")
    for row in stories:
        told = re.findall(r".*?\.(?: |$)", row["story"])
        about = defaultdict(list)
        clean = []
        for sentence in map(str.strip, told):
            mentioned = re.findall(r"\[(.)\]", sentence)
            if len(mentioned) == 1:
                about[mentioned[0]].append(sentences[re.sub(r"\[.\]", "[{}]", sentence)])
            else:
                clean.append(sentence)
        assert " ".join(clean) == row["clean_story"]
        assert about.keys() == people_of(row).keys()
        assert all(sorted(kinds) == sorted(text.KINDS) for kinds in about.values())


def test_all_fifteen_relations_are_asked(tmp_path):
    rows = generate(tmp_path, "--k", "3", "--train-rows", "3000", "--distractors", "0")
    asked = {RELATION_ID[row["target"]] for row in rows["M3_train.csv"]}
    assert asked == set(rules.RELATIONS_2018)
    assert all(row["story"] == row["clean_story"] for row in rows["M3_train.csv"])


def test_same_seed_same_bytes(tmp_path, files):
    for run, options in {"a": [], "b": [], "c": ["--seed", "1"], "d": ["--k", "5"]}.items():
        generate(tmp_path / run, *options)
    content = {run: {p.name: p.read_bytes() for p in (tmp_path / run).iterdir()} for run in "abcd"}
    assert content["a"] == content["b"]
    assert all(content["a"][name] != content["c"][name] for name in content["a"])
    # A file depends on its own k alone.
    assert content["d"] == {name: b for name, b in content["a"].items() if name[1] == "5"}


def test_fewer_rows_are_the_first_rows(tmp_path, files):
    few = generate(tmp_path, "--train-rows", "20")
    assert few["M3_train.csv"] == files["M3_train.csv"][:20]


def test_ambiguous_paths_are_kept_on_demand(tmp_path, stories):
    kept = [row for rows in generate(tmp_path, "--ambiguous", "keep").values() for row in rows]
    assert any(row["proof_state"] == "[]" for row in kept)
    assert not any(row["proof_state"] == "[]" for row in stories)
    readings = answers_of(family_2018(3, lambda: 2), {cell_clause(row) for row in kept})
    assert any(len(answers) > 1 for answers in readings.values())


@given(st.integers(1, 3), st.integers(1, 3))
def test_edges_are_what_the_words_mean(l_max, children):
    members = paths.family(l_max, children)
    tree = family_2018(l_max, lambda: children)
    assert len(members.head) == len(tree.parents)
    count = Counter(
        tree.relation(x, y)
        for x, y in itertools.permutations(range(len(tree.parents)), 2)
        if tree.relation(x, y) != "sibling" or not {x, y} & {*tree.partner}
    )
    del count[None]
    assert count == Counter(names(members.edges[members.edges >= 0]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--k", "3,x"], r"--k: '3,x', expected numbers such as 3,4,5,6"),
        (["--k", "1"], "--k is 1, expected 2 to 25"),
        (["--k", "3,26"], "--k is 26, expected 2 to 25"),
        (["--k", "3", "--train-k", "4"], "--train-k is 4, expected some of --k"),
        (["--k", "9"], "over 10000 paths of 5 facts, expected fewer"),
        (["--k", "7", "--l-max", "1", "--c-max", "2", "--c-min", "1"], "no path of 7 facts"),
        (["--train-rows", "-1"], "--train-rows is -1, expected 0 or more"),
        (["--train-rows", "many"], "--train-rows"),
        (["--l-max", "0"], "--l-max is 0, expected 1 to 100"),
        (["--l-max", "9"], "people"),
        (["--c-min", "4"], "--c-min is 4, expected 0 to 3"),
        (["--distractors", "9"], "--distractors is 9, expected 0 to 8"),
        (["--seed", "-1"], "--seed is -1, expected 0 or more"),
        (["--ambiguous", "maybe"], "--ambiguous"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_bad_settings_end_in_one_line_and_write_nothing(tmp_path, monkeypatch, options, message):
    monkeypatch.setattr(paths, "MAX_PATHS", 10_000)
    with pytest.raises(InputError, match=re.escape(message)) as error:
        command.main(["--out", str(tmp_path / "new"), *options])
    assert "\n" not in str(error.value)
    assert not (tmp_path / "new").exists()


def test_a_folder_is_needed():
    with pytest.raises(InputError, match="expected --out DIR"):
        command.main([])


def test_what_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="cannot be made a folder"):
        command.main(["--out", str(tmp_path / "file")])
    (tmp_path / "M3_train.csv").mkdir()
    with pytest.raises(InputError, match=r"M3_train\.csv: cannot be written"):
        command.main(["--out", str(tmp_path), "--k", "3", "--train-rows", "5"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["M3_train.csv", "file"]


def test_help_names_every_parameter_with_the_papers_value(capsys):
    with pytest.raises(SystemExit) as stop:
        command.main(["--help"])
    assert stop.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for value in ("[3,4,5,6; 3 to 6", "[4000; 4000", "[1000; 1000", "[8; 8", "[3; 3, table 2]"):
        assert value in text
