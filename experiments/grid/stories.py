"""Generated stories, kept in the user's cache folder for the next run that asks for the same.

They stand beside the compiled programs, which are for arrays of just these shapes: the same command
in another folder, or another model of a grid, neither compiles nor draws what is there.
"""

import hashlib
import io
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

import generator
from clutrr_jax.command import cache_folder
from generator.config import Config
from generator.errors import InputError
from generator.files import atomic_write
from generator.write import write_dataset

MOST = 16  # data sets that are kept, those that were used last
LARGEST = 1 << 26  # bytes of one
_SUM = 16  # bytes of the checksum before each


def write_stories(settings: dict[str, Any], folder: Path) -> None:
    """Generates the data set that `config.generate` asks for, or copies it from the cache.

    Raises:
      InputError: as `write_dataset` does.
    """
    config = Config.from_json(settings)
    begun = folder.is_dir() and any(folder.iterdir())
    if config.bank or begun:  # the file of a bank may change; what is begun goes on
        write_dataset(config, folder)
        return
    kept = cache_folder() / "stories" / _identity(config)
    if not _copy(kept, folder):
        write_dataset(config, folder)
        with suppress(OSError, InputError):  # a cache that cannot be written is no fault of the run
            _keep(folder, kept)


def _identity(config: Config) -> str:
    """Of all that decides the stories: the settings, the generator's code and words, and NumPy,
    whose random numbers may be others in another version."""
    digest = hashlib.sha256(json.dumps(config.to_json(), sort_keys=True).encode())
    digest.update(np.__version__.encode())
    code = Path(generator.__file__).parent
    for path in sorted(p for p in code.rglob("*") if p.suffix in (".py", ".txt")):
        digest.update(f"{path.relative_to(code)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:32]


def _copy(kept: Path, folder: Path) -> bool:
    """Whether the folder is now there, from the cache: nothing damaged is."""
    part = folder.with_name(f"{folder.name}.part")  # a folder is whole, or not there
    shutil.rmtree(part, ignore_errors=True)
    try:
        with kept.open("rb") as file:
            checksum, content = file.read(_SUM), file.read()
        if checksum != _checksum(content):
            return False
        with ZipFile(io.BytesIO(content)) as archive:
            archive.extractall(part)
        part.rename(folder)
    except OSError:
        shutil.rmtree(part, ignore_errors=True)
        return False
    with suppress(OSError):  # of a cache that is for reading alone
        os.utime(kept)
    return True


def _keep(folder: Path, kept: Path) -> None:
    """Puts the data set into the cache, and takes out those that were not used for longest."""
    files = sorted(folder.iterdir())
    if sum(file.stat().st_size for file in files) > LARGEST:
        return
    zipped = io.BytesIO()
    with ZipFile(zipped, "w") as archive:
        for file in files:
            archive.write(file, file.name)
    content = zipped.getvalue()
    with atomic_write(kept) as part:
        part.write_bytes(_checksum(content) + content)
    for old in sorted(kept.parent.iterdir(), key=lambda file: file.stat().st_mtime)[:-MOST]:
        old.unlink(missing_ok=True)


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_SUM).digest()
