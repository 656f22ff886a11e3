"""Data sets by name: fixed ones, which are generated on first use, and released ones.

Both are in the cache folder; released ones may also be in the folders that the environment variable
CLUTRR_RELEASES names.
"""

import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from generator.benchmark.release import CONFIGS, checksum, published_checksums, write_data_set
from generator.errors import InputError
from generator.files import cache_folder
from generator.networks.command import parser, write_networks
from generator.tables.readers import SUFFIXES

_V1, _STAR = "clutrr-v1", "star"
NAMES = (*(f"{_V1}/{name}" for name in CONFIGS), f"{_STAR}/rcc8", f"{_STAR}/interval")
_RELEASED = re.compile(r"(data_[0-9a-f]{8})(\.zip)?")


def find_data(name: str | Path) -> Path:
    """Returns the path of a data set: the file or folder of this name, a fixed one in the cache
    folder, where it is generated unless it has the published checksums, or a released one.

    A name that is none of these is returned as it is.

    Raises:
      InputError: there is no such fixed or released data set.
    """
    path, name = Path(name), str(name)
    if not name:
        raise InputError('data: the empty text "", expected a file, a folder or a name')
    if path.exists():
        return path
    if name in NAMES:
        return _generated(name)
    if name.partition("/")[0] in (_V1, _STAR):
        raise InputError(f"{name}: no such data set, expected one of {', '.join(NAMES)}")
    if released := _RELEASED.fullmatch(name):
        return _released(released[1])
    return path


def _released(name: str) -> Path:
    """The .zip or folder of a released data set."""
    given = os.environ.get("CLUTRR_RELEASES", "").split(os.pathsep)
    folders = [*map(Path, filter(None, given))]
    for folder in (*folders, cache_folder()):
        for path in (folder / f"{name}.zip", folder / name):
            if path.exists():
                return path
    looked = ", ".join(map(str, folders)) or "not set"
    raise InputError(
        f"{name}: no such file, expected {name}.zip in a folder of CLUTRR_RELEASES ({looked}) or "
        f"in {cache_folder()}; the README of https://github.com/facebookresearch/clutrr links it"
    )


def _generated(name: str) -> Path:
    """The folder of a fixed data set, whose files have the published checksums.

    Files are generated in a folder of their own and then renamed one by one, so that several
    processes may do so at once.
    """
    release, _, own = name.partition("/")
    published = published_checksums("v1" if release == _V1 else release)
    expected = {file: digest for file, digest in published.items() if file.startswith(f"{own}/")}
    root = cache_folder() / release
    for path in (root / own).glob("*"):
        if path.name.endswith(SUFFIXES) and f"{own}/{path.name}" not in expected:
            raise InputError(f"{path}: no file of {name}, expected its own files alone")
    if not _differing(root, expected):
        return root / own
    print(f"{name}: generating the stories in {root / own}", file=sys.stderr)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=root, prefix=".") as temporary:
            made = Path(temporary)
            if release == _V1:
                write_data_set(own, made / own)
            else:
                options = [f"--algebra={own}", "--test-rows=800", f"--out={made / own}"]
                write_networks(parser().parse_args(options))
            if wrong := _differing(made, expected):
                raise InputError(
                    f"{name}: {wrong[0]} has other stories than published, expected an unchanged "
                    f"generator and the NumPy of requirements.txt (this is NumPy {np.__version__})"
                )
            (root / own).mkdir(exist_ok=True)
            for file in (made / own).iterdir():
                file.replace(root / own / file.name)
    except OSError as error:
        raise InputError(f"{root}: cannot be written ({error.strerror or error})") from None
    return root / own


def _differing(root: Path, expected: dict[str, str]) -> list[str]:
    """Files that are missing, or have another checksum."""
    return [file for file, digest in expected.items()
            if not (root / file).is_file() or checksum(root / file) != digest]  # fmt: skip
