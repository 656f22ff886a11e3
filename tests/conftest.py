"""Fixtures: small generated data sets, the released data sets, a tiny BERT and a browser."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import settings
from ml_collections import ConfigDict

from clutrr_jax.data import batching
from clutrr_jax.data.dataset import load
from clutrr_jax.data.prepare import Prepared, prepare
from clutrr_jax.data.vocabulary import build_vocabulary
from clutrr_jax.evaluation.frozen_states import with_states
from clutrr_jax.models import MODELS
from generator.stories.config import Config
from generator.write import write_dataset
from tests.tiny_bert import write_bert

# No deadlines: tests must not fail on a busy machine.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")

# The tests compile many small programs and run each of them briefly: without optimization they
# compile in a third of the time.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false",
)
jax.config.update("jax_num_cpu_devices", 4)  # for the tests of several devices
batching.MAX_BUCKETS = 2  # each bucket is one more branch to compile
# One cache of compiled programs for all processes: those that tests start read the environment.
CACHE = Path.home() / ".cache" / "clutrr_jax_tests"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)

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
def small(small_folder) -> Prepared:
    return prepare(small_folder)


@pytest.fixture(scope="session")
def few(small_folder) -> Prepared:
    """20 test stories: few batch shapes to compile."""
    data = load(small_folder)
    rows = np.random.default_rng(0).permutation(80)[:20]
    return prepare(replace(data, train=data.train.select(rows), test=data.test.select(rows)))


@pytest.fixture(scope="session")
def tiny_bert(small, tmp_path_factory) -> Path:
    """Folder of a random BERT with 2 layers and 32 dimensions, whose vocabulary has all words."""
    words = build_vocabulary(small.train, 0).words
    return write_bert(tmp_path_factory.mktemp("bert"), words)


@pytest.fixture(scope="session")
def small_for(small, tiny_bert, tmp_path_factory) -> Callable[..., Prepared]:
    """Function from the name of a model to the small data set as the model reads it: with states
    of `tiny_bert` for a model over an encoder; or with its token ids for other `settings`,
    such as `train_encoder=True`."""

    @cache
    def prepared(name: str, **settings: Any) -> Prepared:
        spec = MODELS[name]
        if not spec.encoder:
            return small
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
            config = spec.config | {"folder": str(tiny_bert)} | settings
            return with_states(small, ConfigDict(config))

    return prepared


@pytest.fixture
def registry():
    """Removes the models that a test registers."""
    before = dict(MODELS)
    yield
    MODELS.clear()
    MODELS.update(before)


@pytest.fixture(scope="session")
def releases() -> list[Path]:
    """The six released data sets, from the folder that the environment variable CLUTRR_RELEASES
    names."""
    folder = os.environ.get("CLUTRR_RELEASES")
    if not folder:
        pytest.skip("CLUTRR_RELEASES is not set")
    found = sorted(Path(folder).glob("data_*.zip"))
    assert len(found) == 6, f"expected the six data_*.zip in {folder}"
    return found


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Headless Chromium that keeps console messages in its log "browser"."""
    from selenium import webdriver

    found = shutil.which("chromium"), shutil.which("chromedriver")
    if not all(found):
        pytest.skip("chromium or chromedriver is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = found[0]
    for flag in (*CHROMIUM, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(found[1]))
    yield driver
    driver.quit()
