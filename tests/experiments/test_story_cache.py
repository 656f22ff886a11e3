"""Generated stories that are taken from the user's cache are those that would be generated."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.grid import stories
from experiments.grid.stories import write_stories
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
    """The folders that the generator has written to."""
    folders = []

    def noted(config: Config, folder: Path) -> None:
        folders.append(folder)
        write_dataset(config, folder)

    monkeypatch.setattr(stories, "write_dataset", noted)
    return folders


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("expected")
    write_dataset(Config.from_json(SETTINGS), folder)
    return content(folder)


@pytest.fixture(scope="module")
def kept_bytes(tmp_path_factory) -> bytes:
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        write_stories(SETTINGS, cache / "run")
    (kept,) = (cache / "clutrr_jax" / "stories").iterdir()
    return kept.read_bytes()


def test_what_is_kept_is_what_would_be_generated(cache, generated, expected, tmp_path) -> None:
    for name in ("first", "deep/second", "third"):
        write_stories(SETTINGS, tmp_path / name)
        assert content(tmp_path / name) == expected
    assert generated == [tmp_path / "first"]
    (tmp_path / "empty").mkdir()  # the folder of a host that saves nothing
    write_stories(SETTINGS, tmp_path / "empty")
    assert content(tmp_path / "empty") == expected and len(generated) == 1


@pytest.mark.parametrize("name, value", [("seed", 4), ("train_rows", 31), ("hold_out", "")])
def test_other_settings_are_other_stories(cache, generated, tmp_path, name, value) -> None:
    write_stories(SETTINGS, tmp_path / "one")
    write_stories(SETTINGS | {name: value}, tmp_path / "other")
    assert len(generated) == len(list(cache.iterdir())) == 2


def test_another_generator_gives_other_stories(cache, generated, tmp_path, monkeypatch) -> None:
    write_stories(SETTINGS, tmp_path / "before")
    code = tmp_path / "generator"
    shutil.copytree(Path(stories.generator.__file__).parent, code)
    monkeypatch.setattr(stories.generator, "__file__", str(code / "__init__.py"))
    write_stories(SETTINGS, tmp_path / "a copy of it")
    assert len(generated) == 1
    with (code / "paraphrases" / "data" / "words.txt").open("a") as words:
        words.write("\n")
    write_stories(SETTINGS, tmp_path / "after")
    assert len(generated) == 2


def test_what_is_damaged_is_generated(cache, generated, expected, tmp_path) -> None:
    write_stories(SETTINGS, tmp_path / "whole")
    (kept,) = cache.iterdir()
    kept.write_bytes(kept.read_bytes()[:-1000])
    write_stories(SETTINGS, tmp_path / "new")
    assert content(tmp_path / "new") == expected and len(generated) == 2
    write_stories(SETTINGS, tmp_path / "third")
    assert content(tmp_path / "third") == expected and len(generated) == 2


@given(data=st.data())
def test_no_damage_is_copied(kept_bytes, tmp_path_factory, data) -> None:
    """One byte that differs, or an end that is missing."""
    folder = tmp_path_factory.mktemp("damage")
    place = data.draw(st.integers(0, len(kept_bytes) - 1))
    changed = data.draw(st.integers(0, 255).filter(lambda byte: byte != kept_bytes[place]))
    end = data.draw(st.sampled_from([b"", bytes([changed]) + kept_bytes[place + 1 :]]))
    (folder / "kept").write_bytes(kept_bytes[:place] + end)
    assert not stories._copy(folder / "kept", folder / "run")
    assert [file.name for file in folder.iterdir()] == ["kept"]


def test_what_is_begun_goes_on(cache, generated, expected, tmp_path) -> None:
    write_stories(SETTINGS, tmp_path / "whole")
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / "config.json").write_bytes(expected["config.json"])
    (tmp_path / "new.part" / "left by a run that was killed").mkdir(parents=True)
    for folder in (begun, tmp_path / "new"):
        write_stories(SETTINGS, folder)
        assert content(folder) == expected
    assert generated == [tmp_path / "whole", begun] and not (tmp_path / "new.part").exists()


def test_a_cache_that_cannot_be_written_is_no_fault(generated, expected, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for name in ("first", "second"):
        write_stories(SETTINGS, tmp_path / name)
        assert content(tmp_path / name) == expected
    assert len(generated) == 2


def test_a_cache_for_reading_alone_is_read(cache, generated, expected, tmp_path, monkeypatch):
    write_stories(SETTINGS, tmp_path / "first")

    def refused(path) -> None:
        raise PermissionError(path)

    monkeypatch.setattr(stories.os, "utime", refused)  # root may write what nobody may
    write_stories(SETTINGS, tmp_path / "second")
    assert content(tmp_path / "second") == expected and generated == [tmp_path / "first"]


def test_few_and_small_ones_are_kept(cache, generated, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(stories, "MOST", 2)
    for seed in (0, 1, 0, 2, 0):  # 1 is the one that was not used for longest
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        write_stories(SETTINGS | {"seed": seed}, tmp_path / "run")
    assert len(generated) == 3 and len(list(cache.iterdir())) == 2
    monkeypatch.setattr(stories, "LARGEST", 1000)
    write_stories(SETTINGS | {"seed": 3}, tmp_path / "large")
    assert len(generated) == 4 and len(list(cache.iterdir())) == 2


def test_stories_in_words_of_the_users_are_not_kept(cache, generated, tmp_path) -> None:
    bank = {clause_name(key): texts for key, texts in synthetic_templates().items()}
    file = tmp_path / "bank.json"
    file.write_text(json.dumps(bank))
    for name in ("first", "second"):
        write_stories(SETTINGS | {"bank": str(file), "hold_out": "clauses"}, tmp_path / name)
    assert len(generated) == 2 and not cache.exists()
