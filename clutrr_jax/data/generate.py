"""Generated data sets, cached in the user's cache folder for other runs with the same settings."""

import hashlib
import json
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import generator
from clutrr_jax.command import cache_folder
from generator.config import Config
from generator.write import write_dataset


def write_stories(settings: dict[str, Any], folder: Path) -> None:
    """Writes the data set for the settings `config.generate`, or copies it from the cache.

    Raises:
      InputError: as in `write_dataset`.
    """
    config = Config.from_json(settings)
    resumes = folder.is_dir() and any(folder.iterdir())
    if config.bank or resumes:  # the content of a user's bank is not part of the cache key
        write_dataset(config, folder)
        return
    cached = cache_folder() / "stories" / _cache_key(config)
    if cached.is_dir():
        _copy(cached, folder)
        return
    write_dataset(config, folder)
    with suppress(OSError):  # a read-only cache, or another process was faster
        _copy(folder, cached)


def _copy(source: Path, target: Path) -> None:
    """Copies a folder atomically: `target` is complete or missing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent) as temporary:
        shutil.copytree(source, Path(temporary) / "data").rename(target)


def _cache_key(config: Config) -> str:
    """Hash of everything that determines the stories: settings, NumPy and the generator."""
    digest = hashlib.sha256(json.dumps([config.to_json(), np.__version__]).encode())
    code = Path(generator.__file__).parent
    for path in sorted(p for p in code.rglob("*") if p.suffix in (".py", ".txt")):
        digest.update(path.relative_to(code).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:32]
