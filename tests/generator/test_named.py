"""Data sets by name: fixed ones in the cache folder, and released ones."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import clutrr_jax
from clutrr_jax.data.prepare import prepare_run
from generator import named
from generator.__main__ import main
from generator.benchmark import release
from generator.benchmark.release import CONFIGS, checksum, published_checksums
from generator.errors import InputError
from generator.named import NAMES, find_data
from generator.networks.command import parser, write_networks
from generator.stories.config import parse_tasks


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache folder, in which gen23 has one train file and one test, and star/rcc8 too."""
    small = replace(CONFIGS["gen23"], train_rows=(20, 0), test_rows=5, test=parse_tasks("1.2"))
    monkeypatch.setattr(release, "CONFIGS", CONFIGS | {"gen23": small})
    monkeypatch.setattr(named, "write_networks", write_few)
    release.write_data_set("gen23", tmp_path / "made" / "v1" / "gen23")
    few = ["--algebra=rcc8", f"--out={tmp_path / 'made' / 'star' / 'rcc8'}"]
    write_few(parser().parse_args(few))
    made = tmp_path / "made"
    files = {version: {path.relative_to(made / version).as_posix(): checksum(path)
                       for path in (made / version).glob("*/*")
                       if path.name != "config.json"}
             for version in ("v1", "star")}  # fmt: skip
    monkeypatch.setattr(named, "published_checksums", files.get)
    monkeypatch.setenv("CLUTRR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CLUTRR_RELEASES", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


def write_few(options) -> list[Path]:
    options.train_rows, options.test_rows = 2, 2
    return write_networks(options)


def test_a_fixed_data_set_is_generated_once(cache: Path, capsys) -> None:
    data = clutrr_jax.load("clutrr-v1/gen23")
    assert (data.name, len(data.train), len(data.test)) == ("gen23", 20, 5)
    assert "generating" in capsys.readouterr().err
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*")}
    assert prepare_run("clutrr-v1/gen23", cache).name == "gen23"
    assert main(["audit", "clutrr-v1/gen23"]) == 0
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*")} == before
    assert {path.name for path in (cache / "clutrr-v1").iterdir()} == {"gen23"}  # nothing is left


@pytest.mark.parametrize(
    ("name", "file"),
    [("clutrr-v1/gen23", "1.2_test.csv"), ("star/rcc8", "test_rcc8_k_3_b_1.csv"),
     ("star/rcc8", "algebra.json")],
)  # fmt: skip
@pytest.mark.parametrize("damage", ["cut", "removed"])
def test_a_damaged_file_is_made_again(cache: Path, name: str, file: str, damage: str) -> None:
    path = find_data(name) / file
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[:-9])
    else:
        path.unlink()
    assert find_data(name) == path.parent
    assert path.read_bytes() == content


def test_a_file_that_is_not_published_is_refused(cache: Path) -> None:
    """Its stories would be read as those of the data set."""
    path = find_data("clutrr-v1/gen23") / "1.11_test.csv"
    path.write_text("")
    with pytest.raises(InputError, match=r"1.11_test.csv: no file of clutrr-v1/gen23"):
        clutrr_jax.load("clutrr-v1/gen23")


def test_an_empty_name_is_not_the_current_folder(cache: Path, capsys) -> None:
    with pytest.raises(InputError, match='the empty text ""'):
        clutrr_jax.load("")
    assert main(["audit", ""]) == 2


def test_two_readers_at_once(cache: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert len({*pool.map(find_data, ["star/rcc8", "star/rcc8"])}) == 1
    data = clutrr_jax.load("star/rcc8")
    assert data.test.algebra.name == "rcc8"
    assert {*data.test.task.tolist()} == {1, 2, 4, 8}


def test_other_stories_than_published_are_no_data_set(cache: Path, monkeypatch) -> None:
    monkeypatch.setattr(named, "published_checksums", lambda version: {"gen23/1.2_test.csv": "0"})
    with pytest.raises(InputError, match=r"gen23/1.2_test.csv has other stories than published"):
        find_data("clutrr-v1/gen23")
    assert not list((cache / "clutrr-v1").iterdir())


def test_an_existing_folder_of_the_name_wins(cache: Path) -> None:
    shutil.copytree("made/v1/gen23", "star/interval")
    assert find_data("star/interval") == Path("star/interval")


def test_released_data_are_looked_for(cache: Path, tmp_path: Path, monkeypatch) -> None:
    name = "data_0123abcd"
    with pytest.raises(InputError, match=rf"{name}.zip in .* \(not set\) or in .*cache; .*github"):
        clutrr_jax.load(name)
    shutil.copytree("made/v1/gen23", cache / name)
    assert clutrr_jax.load(name).name == name
    monkeypatch.setenv("CLUTRR_RELEASES", f"{tmp_path / 'none'}:{tmp_path / 'releases'}")
    shutil.make_archive(f"releases/{name}", "zip", "made/v1/gen23")
    for given in (name, f"{name}.zip"):
        assert find_data(given) == tmp_path / "releases" / f"{name}.zip"


@pytest.mark.parametrize("name", ["clutrr-v1/gen24", "clutrr-v1", "star/kinship"])
def test_a_name_that_is_none(name: str, cache: Path, capsys) -> None:
    assert main(["audit", name]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and name in error and "clutrr-v1/gen23" in error


def test_every_file_of_the_names_has_a_published_checksum(cache: Path) -> None:
    """The smallest files of STaR are compared; the release has tests of its own."""
    for name in NAMES:
        version, own = name.split("/")
        published = published_checksums(version.removeprefix("clutrr-"))
        assert any(file.startswith(f"{own}/") for file in published)
        if version == "star":
            out = cache / own
            options = [f"--algebra={own}", f"--out={out}", "--test=8.2", "--test-rows=800"]
            write_networks(parser().parse_args([*options, "--train-rows=0"]))
            for path in (out / "algebra.json", *out.glob("*.csv")):
                assert checksum(path) == published[f"{own}/{path.name}"]
