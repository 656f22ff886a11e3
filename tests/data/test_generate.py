"""Generated stories from the cache equal those that the generator writes."""

import json
import shutil
from pathlib import Path

import pytest

from clutrr_jax.data import generate as stories
from clutrr_jax.data.generate import write_stories
from generator.config import Config
from generator.paraphrases.templates import synthetic_templates
from generator.text import clause_name
from generator.write import write_dataset

SETTINGS = {"train": "1.2", "test": "1.2,1.3", "train_rows": 30, "test_rows": 5, "seed": 3}


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "clutrr_jax" / "stories"


@pytest.fixture
def generated(monkeypatch) -> list[Path]:
    """The folders that the generator writes to during a test."""
    folders = []

    def write(config: Config, folder: Path) -> None:
        folders.append(folder)
        write_dataset(config, folder)

    monkeypatch.setattr(stories, "write_dataset", write)
    return folders


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("expected")
    write_dataset(Config.from_json(SETTINGS), folder)
    return content(folder)


def test_cached_stories_equal_generated_ones(cache, generated, expected, tmp_path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("first", "deep/second", "empty"):
        write_stories(SETTINGS, tmp_path / name)
        assert content(tmp_path / name) == expected
    assert generated == [tmp_path / "first"]
    assert [content(folder) for folder in cache.iterdir()] == [expected]


def test_other_settings_or_code_have_another_folder(
    cache, generated, tmp_path, monkeypatch
) -> None:
    for i, change in enumerate([{}, {"seed": 4}, {"hold_out": ""}], start=1):
        write_stories(SETTINGS | change, tmp_path / str(i))
        assert len(generated) == len(list(cache.iterdir())) == i
    code = tmp_path / "generator"
    shutil.copytree(Path(stories.generator.__file__).parent, code)
    monkeypatch.setattr(stories.generator, "__file__", str(code / "__init__.py"))
    write_stories(SETTINGS, tmp_path / "same code elsewhere")
    assert len(generated) == 3
    with (code / "paraphrases" / "data" / "words.txt").open("a") as words:
        words.write("\n")
    write_stories(SETTINGS, tmp_path / "changed")
    assert len(generated) == 4


def test_interrupted_generation_resumes(cache, generated, expected, tmp_path) -> None:
    write_stories(SETTINGS, tmp_path / "complete")
    partial = tmp_path / "partial"
    partial.mkdir()
    (partial / "config.json").write_bytes(expected["config.json"])
    write_stories(SETTINGS, partial)
    assert content(partial) == expected and generated == [tmp_path / "complete", partial]


def test_interrupted_copy_leaves_nothing(cache, tmp_path, monkeypatch) -> None:
    write_stories(SETTINGS, tmp_path / "first")

    def copy_one_file(source: Path, target: Path) -> Path:
        target.mkdir()
        shutil.copy(source / "config.json", target)
        raise KeyboardInterrupt

    monkeypatch.setattr(stories.shutil, "copytree", copy_one_file)
    with pytest.raises(KeyboardInterrupt):
        write_stories(SETTINGS, tmp_path / "second")
    assert not (tmp_path / "second").exists()


def test_cache_that_cannot_be_used_is_no_error(generated, expected, tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for name in ("first", "second"):
        write_stories(SETTINGS, tmp_path / name)
        assert content(tmp_path / name) == expected
    assert len(generated) == 2


def test_stories_from_a_users_bank_are_not_cached(cache, generated, tmp_path) -> None:
    file = tmp_path / "bank.json"
    templates = synthetic_templates()
    file.write_text(json.dumps({clause_name(key): texts for key, texts in templates.items()}))
    for name in ("first", "second"):
        write_stories(SETTINGS | {"bank": str(file), "hold_out": "clauses"}, tmp_path / name)
    assert len(generated) == 2 and not cache.exists()
