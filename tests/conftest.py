"""Data for the tests: small data sets of the project's own generator, and the released ones."""

import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import jax
import pytest
from hypothesis import settings
from ml_collections import ConfigDict
from selenium import webdriver

from clutrr_jax.data.prepare import Prepared, prepare
from clutrr_jax.data.vocabulary import build_vocabulary
from clutrr_jax.models import MODELS
from clutrr_jax.models.pretrained.frozen_states import with_states
from generator.config import Config
from generator.write import write_dataset
from tests.tiny_bert import write_bert

# A busy machine is no fault.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")

# As launch.py does; also where the tests of replicas on several devices need them.
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_compilation_cache_dir", str(Path.home() / ".cache" / "clutrr_jax_tests"))

CHROMIUM = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1280,900",
)  # fmt: skip


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory) -> Path:
    """120 train stories of k = 2, 3 and 20 test stories each of k = 2..5, clean and with noise."""
    folder = tmp_path_factory.mktemp("small")
    values = {"train": "1.2,5.3", "test": "1.2,1.3,2.4,1.5", "train_rows": 60, "test_rows": 20}
    write_dataset(Config.from_json(values), folder)
    return folder


@pytest.fixture(scope="session")
def small_words(small_folder) -> Prepared:
    return prepare(small_folder)


@pytest.fixture(scope="session")
def small(small_words) -> Prepared:
    return small_words


@pytest.fixture(scope="session")
def tiny_bert(small_words, tmp_path_factory) -> Path:
    """The folder of a random BERT of two layers and 32 dimensions, which knows the words."""
    words = build_vocabulary(small_words.train, 0).words
    return write_bert(tmp_path_factory.mktemp("bert"), words)


@pytest.fixture(scope="session")
def small_for(small_words, tiny_bert, tmp_path_factory) -> Callable[[str], Prepared]:
    """The small data as the model of that name reads them, be it as states of `tiny_bert`."""

    @cache
    def prepared(name: str) -> Prepared:
        spec = MODELS[name]
        if spec.kind != "states":
            return small_words
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
            return with_states(small_words, ConfigDict(spec.config | {"folder": str(tiny_bert)}))

    return prepared


@pytest.fixture(scope="session")
def releases() -> list[Path]:
    """The six released data sets, where the environment variable CLUTRR_RELEASES says."""
    folder = os.environ.get("CLUTRR_RELEASES")
    if not folder:
        pytest.skip("CLUTRR_RELEASES is not set: the released data sets are not tested")
    found = sorted(Path(folder).glob("data_*.zip"))
    assert len(found) == 6, f"expected the six data_*.zip in {folder}"
    return found


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Headless Chromium; what it complains of is kept as its log "browser"."""
    found = shutil.which("chromium"), shutil.which("chromedriver")
    if not all(found):
        pytest.skip("no chromium with its chromedriver: the report page is not tried in a browser")
    options = webdriver.ChromeOptions()
    options.binary_location = found[0]
    for flag in (*CHROMIUM, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(found[1]))
    yield driver
    driver.quit()
