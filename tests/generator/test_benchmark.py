"""The release clutrr-v1: its checksums, what it holds out, and its data card."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from generator.__main__ import main
from generator.benchmark import release
from generator.benchmark.release import CONFIGS, checksum, published_checksums, write_benchmark
from generator.errors import InputError
from generator.stories.config import Config, parse_tasks
from generator.write import FORMATS, dataset_files, write_dataset
from tests.generator.test_write import read

PEOPLE = re.compile(r"\[\w+\]")


@pytest.fixture
def tiny(monkeypatch) -> dict[str, str]:
    """Makes the release two small data sets; returns the checksums that it expects, to be set."""
    tests = {"one": parse_tasks("1.2"), "two": parse_tasks("1.2,5.2")}
    config = Config(train=(), test_rows=4, language="synthetic")
    configs = {name: replace(config, test=tasks) for name, tasks in tests.items()}
    checksums: dict[str, str] = {}
    monkeypatch.setattr(release, "CONFIGS", configs)
    monkeypatch.setattr(release, "published_checksums", lambda version: checksums)
    return checksums


def csv_checksums(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): checksum(path) for path in folder.glob("*/*.csv")}


@pytest.mark.parametrize(("name", "tests"), [("gen23", "1.2"), ("gen234", "1.4")])
def test_stories_have_the_published_checksums(name: str, tests: str, tmp_path: Path) -> None:
    config = replace(CONFIGS[name], train_rows=0, test=parse_tasks(tests))
    published = published_checksums("v1")
    for path in write_dataset(config, tmp_path / name):
        assert checksum(path) == published[f"{name}/{path.name}"]


def test_every_file_has_a_published_checksum() -> None:
    published = set(published_checksums("v1"))
    for name, config in CONFIGS.items():
        files = {f"{name}/{file}.csv" for file in dataset_files(config)}
        assert files <= published
        published -= files
    assert {name.split("/")[0] for name in published} == {"diagnosis"} and len(published) == 11


def test_all_formats_have_the_same_checksums_and_shared_files(tiny, tmp_path: Path) -> None:
    for name, config in release.CONFIGS.items():
        write_dataset(config, tmp_path / "separate" / name)
    tiny.update(csv_checksums(tmp_path / "separate"))
    for form in FORMATS:
        out = tmp_path / form
        written = write_benchmark("v1", out, form=form)
        names = {path.relative_to(out).as_posix().removesuffix(f".{form}") for path in written}
        assert {f"{name}.csv" for name in names} == set(tiny)
        links = [path.stat().st_nlink for path in written]
        assert links == [2, 2, 1]
        assert f"path: two/*_train.{form}\n" in (out / "README.md").read_text()
    before = {path: path.stat().st_mtime_ns for path in written}
    write_benchmark("v1", out, form=form)  # resumes
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_changed_story_is_reported(tiny, tmp_path: Path) -> None:
    tiny["one/1.2_test.csv"] = "0"
    with pytest.raises(InputError, match=r"one/1.2_test.csv: not the stories of clutrr-v1"):
        write_benchmark("v1", tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [("--benchmark v2", "v1"), ("--benchmark v1 --seed 3", "--benchmark has fixed settings")],
)
def test_a_release_has_no_settings(options: str, message: str, tmp_path: Path, capsys) -> None:
    assert main([*options.split(), "--out", str(tmp_path / "out")]) == 2
    stderr = capsys.readouterr().err
    assert stderr.count("\n") == 1 and message in stderr and not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("release")
    assert main(["--benchmark", "v1", "--out", str(out), "--workers", "2"]) == 0
    return out


@pytest.mark.slow
def test_the_whole_release_has_the_published_checksums(whole: Path) -> None:
    assert csv_checksums(whole) == published_checksums("v1")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_the_whole_release_has_the_same_stories_in_other_formats(form: str, tmp_path: Path) -> None:
    options = ["--benchmark", "v1", "--out", str(tmp_path), "--workers", "2", "--format", form]
    assert main(options) == 0  # which compares the checksums
    assert len(list(tmp_path.glob(f"*/*.{form}"))) == len(published_checksums("v1"))


@pytest.mark.slow
def test_train_stories_have_no_held_out_clause_or_paraphrase(whole: Path) -> None:
    """A sentence is held out if only held-out paraphrases contain it."""
    for name in CONFIGS:
        rows = {
            split: [row for path in (whole / name).glob(f"*_{split}.csv") for row in read(path)]
            for split in ("train", "test")
        }
        assert len(rows["train"]) == 10_000
        held = json.loads((whole / name / "config.json").read_text())["held_out"]["clauses"]
        assert set(held) == ({"3", "4"} if name == "gen234" else {"3"})
        clauses = {clause for listed in held.values() for clause in listed}
        assert not clauses & {row["f_comb"] for row in rows["train"]}
        trained = {wording(row) for row in rows["train"]}
        for row in rows["test"]:
            noise, k = row["task_name"].removeprefix("task_").split(".")
            new_clauses = name != "diagnosis" or noise in ("1", "8", "11", "12")
            assert k not in held or (row["f_comb"] in clauses) == new_clauses
            if noise not in ("8", "10"):  # seen paraphrases
                assert wording(row) not in trained


def wording(row: dict[str, str]) -> str:
    """A clean story without names."""
    return PEOPLE.sub("_", row["clean_story"])


@pytest.mark.slow
def test_the_audit_finds_no_ambiguous_or_wrong_label(whole: Path, capsys) -> None:
    assert main(["audit", *(str(whole / name) for name in CONFIGS)]) == 0
    report = capsys.readouterr().out
    assert report.endswith(" rows, 0 wrong labels\n")
    assert " ambiguous: " not in report
