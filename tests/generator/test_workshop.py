"""Laws of the benchmark of 2018, checked against an explicit model of family trees."""

import ast
import itertools
import re
from collections import Counter, defaultdict

import numpy as np
import pytest

from generator.errors import InputError
from generator.relations.kinship import PREDICATE_OF, PREDICATES, RELATION_ID, RELATIONS, path_heads
from generator.tables.columns import COLUMNS
from generator.workshop import data_set, paths, rules, text
from generator.workshop import stories as stories_2018
from tests.generator.family_trees import family_2018, two_families
from tests.generator.test_write import check_columns, read


def names(predicates) -> tuple[str, ...]:
    return tuple(PREDICATES[p] for p in predicates)


@pytest.mark.parametrize(
    ("l_max", "c_min", "c_max", "facts"),
    [
        (1, 2, 2, 3),
        (1, 1, 3, 2),
        (2, 2, 2, 4),
        (2, 1, 2, 3),
        (3, 1, 1, 5),
        (2, 0, 2, 2),
        (3, 2, 2, 1),
    ],
)
def test_weights_are_mean_counts_over_all_families(l_max, c_min, c_max, facts):
    expected = Counter()
    couples = sum(c_max**level for level in range(l_max))
    families = list(itertools.product(range(c_min, c_max + 1), repeat=couples))
    for family in families:
        sizes = iter(family)  # sizes of couples that do not exist are ignored
        tree = family_2018(l_max, lambda sizes=sizes: next(sizes))
        expected += tree.simple_paths(facts, married_siblings=False)
    members = paths.family(l_max, min(c_max, facts + 1))
    found_paths = paths.paths_of(members, facts, c_min, c_max, drop_ambiguous=False)
    found = Counter()
    for _, clause, answer, weight in zip(*found_paths, strict=True):
        found[names(clause), PREDICATES[answer]] += weight
    assert found == pytest.approx(
        {path: n / len(families) for path, n in expected.items() if path[1]}
    )


def test_paths_are_drawn_by_weight():
    """A child's child weighs three times as much as a parent's parent."""
    members = paths.family(2, 2)
    listed = paths.paths_of(members, 2, 2, 2, drop_ambiguous=True)
    child, parent = PREDICATES.index("child"), PREDICATES.index("inv-child")
    rows = [listed.clause.tolist().index([p, p]) for p in (child, parent)]
    two = paths.Paths(*(field[rows] for field in listed))._replace(weight=np.array([3.0, 1.0]))
    path, *_ = stories_2018.sample_batch(members, two, 0, np.random.default_rng(0))
    # The standard deviation of the fraction among 4096 stories is .007.
    assert len(path) == stories_2018.BLOCK and (path == 0).mean() == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize("facts", [2, 3, 4])
def test_proofs_hold_in_every_family(facts):
    """Includes families where spouses have parents, and edges between married siblings."""
    num_paths = 0
    for tree in (two_families(), family_2018(3, lambda: 2)):
        for (clause, answer), count in tree.simple_paths(facts).items():
            proof = rules.prove(tuple(PREDICATES.index(p) for p in clause))
            if proof:
                num_paths += count
                assert PREDICATES[proof.head] == answer, clause
    assert num_paths > 700


def generate(out, *options: str) -> dict[str, list[dict[str, str]]]:
    small = ["--k", "3,5", "--train-rows", "150", "--test-rows", "40"]
    assert data_set.main(["--out", str(out), *small, *options]) == 0
    return {path.name: read(path) for path in sorted(out.glob("*.csv"))}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return generate(tmp_path_factory.mktemp("workshop"))


@pytest.fixture(scope="module")
def stories(files):
    return [row for rows in files.values() for row in rows]


def genders_of(row):
    return dict(pair.split(":") for pair in row["genders"].split(","))


def test_files_and_columns(files, stories):
    assert {name: len(rows) for name, rows in files.items()} == {
        "M3_train.csv": 150, "M3_test.csv": 40, "M5_train.csv": 150, "M5_test.csv": 40,
    }  # fmt: skip
    for name, rows in files.items():
        assert tuple(rows[0]) == COLUMNS
        assert [row[""] for row in rows] == [str(i) for i in range(len(rows))]
        assert {row["task_split"] for row in rows} == {name[3:-4]}
        assert {row["task_name"] for row in rows} == {f"task_1.{name[1]}"}
    assert len({row["id"] for row in stories}) == len({r["story"] for r in stories}) == len(stories)


def test_clean_stories_state_exactly_the_facts(stories):
    patterns = [re.compile(f.replace("[", r"\[").format(x="(?P<x>.)", y="(?P<y>.)", r="(?P<r>.+)"))
                for f in text.FACTS]  # fmt: skip
    for row in stories:
        check_columns(row)
        genders = genders_of(row)
        people = list(genders)
        stated = []
        for sentence in re.findall(r"[^.]+\.", row["clean_story"]):
            (match,) = filter(None, (p.fullmatch(sentence.strip()) for p in patterns))
            stated.append((match["x"], match["r"], match["y"]))
        types = ast.literal_eval(row["edge_types"])
        assert stated == list(zip(people, types, people[1:], strict=False))
        for x, relation, y in [*stated, (people[0], row["target"], people[-1])]:
            assert RELATION_ID[relation] in rules.RELATIONS_2018
            assert relation not in ("husband", "wife") or genders[x] != genders[y]


def test_no_other_target_follows_from_the_facts(stories):
    for row in stories:
        relations = [RELATION_ID[r] for r in ast.literal_eval(row["edge_types"])]
        clause = tuple(PREDICATE_OF[relations].tolist())
        answer = PREDICATE_OF[RELATION_ID[row["target"]]]
        assert rules.prove(clause).head == answer
        assert path_heads(clause) <= {answer}  # also by the rules of 2019


def test_distractors_do_not_mention_kinship(stories):
    kinship = re.compile("|".join([*RELATIONS, "parent", "sibling", "married"]))
    kind_of = {s: kind for kind, group in text.DISTRACTORS.items() for s in group}
    assert len(text.KINDS) == 8
    for sentence in kind_of:
        assert not kinship.search(sentence.lower())
        assert sentence.count("[{}]") == 1 and sentence.endswith(".")
    for row in stories:
        kinds = defaultdict(list)
        clean = []
        for sentence in map(str.strip, re.findall(r"[^.]+\.", row["story"])):
            mentioned = re.findall(r"\[(.)\]", sentence)
            if len(mentioned) == 1:
                kinds[mentioned[0]].append(kind_of[re.sub(r"\[.\]", "[{}]", sentence)])
            else:
                clean.append(sentence)
        assert " ".join(clean) == row["clean_story"]
        assert kinds.keys() == genders_of(row).keys()
        assert all(sorted(found) == sorted(text.KINDS) for found in kinds.values())


def test_all_fifteen_relations_are_targets(tmp_path):
    rows = generate(tmp_path, "--k", "3", "--train-rows", "3000", "--distractors", "0")
    targets = {RELATION_ID[row["target"]] for row in rows["M3_train.csv"]}
    assert targets == set(rules.RELATIONS_2018) and len(targets) == 15
    assert {PREDICATES[PREDICATE_OF[r]] for r in targets} == set(rules.PREDICATES_2018)
    assert RELATION_ID["daughter-in-law"] not in targets
    assert all(row["story"] == row["clean_story"] for row in rows["M3_train.csv"])


def test_files_depend_on_seed_and_k_only(tmp_path, files):
    assert generate(tmp_path / "a") == files
    other = generate(tmp_path / "b", "--k", "3", "--seed", "1")
    assert all(other[name] != files[name] for name in ("M3_train.csv", "M3_test.csv"))
    fewer = generate(tmp_path / "c", "--k", "5", "--train-rows", "20")
    assert fewer == {
        "M5_test.csv": files["M5_test.csv"],
        "M5_train.csv": files["M5_train.csv"][:20],
    }


def test_ambiguous_paths_can_be_kept(tmp_path, stories):
    kept = [row for rows in generate(tmp_path, "--ambiguous", "keep").values() for row in rows]
    assert any(row["proof_state"] == "[]" for row in kept)
    assert not any(row["proof_state"] == "[]" for row in stories)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--k 3,x", "--k: '3,x', expected numbers such as 3,4,5,6"),
        ("--k 3 --train-k 4", "--train-k is 4, expected a subset of --k"),
        ("--k 9", "over 10000 paths of 5 facts, expected fewer"),
        ("--k 7 --l-max 1 --c-max 2 --c-min 1", "no path of 7 facts"),
        ("--c-min 4", "--c-min 4: expected 0 to 3"),
    ],
)
def test_errors_for_bad_settings(tmp_path, monkeypatch, options, message):
    monkeypatch.setattr(paths, "MAX_PATHS", 10_000)
    with pytest.raises(InputError, match=re.escape(message)):
        data_set.main(["--out", str(tmp_path / "new"), *options.split()])
    assert not (tmp_path / "new").exists()
