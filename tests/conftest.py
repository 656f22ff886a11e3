"""Data for the tests: small data sets of the project's own generator, and the released ones."""

import os
from pathlib import Path

import jax
import pytest

from clutrr_jax.prepare import Prepared, prepare
from generator.config import Config
from generator.write import write_dataset

# As launch.py does; also where the tests of replicas on several devices need them.
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_compilation_cache_dir", str(Path.home() / ".cache" / "clutrr_jax_tests"))


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
def releases() -> list[Path]:
    """The six released data sets, where the environment variable CLUTRR_RELEASES says."""
    folder = os.environ.get("CLUTRR_RELEASES")
    if not folder:
        pytest.skip("CLUTRR_RELEASES is not set: the released data sets are not tested")
    found = sorted(Path(folder).glob("data_*.zip"))
    assert len(found) == 6, f"expected the six data_*.zip in {folder}"
    return found
