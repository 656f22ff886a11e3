"""Loading of experiment files for `launch.py`."""

from pathlib import Path
from runpy import run_path
from traceback import extract_tb
from typing import Any

from ml_collections import ConfigDict

from generator.errors import InputError, at


def load_experiment(file: str) -> ConfigDict:
    """Executes an experiment file and returns `get_config()`.

    Raises:
      InputError: no such file, or an error in it.
    """
    if not Path(file).is_file():
        raise InputError(f"{at(file)}: no such file, expected an experiment")
    expected = "expected an experiment with get_config()"
    try:
        namespace = run_path(file)
        if "get_config" not in namespace:
            raise InputError(f"{at(file)}: no get_config() in this file, {expected}")
        config = namespace["get_config"]()
    except InputError:
        raise
    except Exception as error:
        frames = extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == file]
        line = getattr(error, "lineno", None) or (lines or [1])[-1]
        reason = one_line(error)
        raise InputError(f"{at(file)}, line {line}: {reason}; {expected}") from None
    if not isinstance(config, ConfigDict):
        raise InputError(f"{at(file)}: get_config() returned {config!r}, expected a ConfigDict")
    return config


def check_names(arguments: list[str], groups: dict[str, ConfigDict]) -> None:
    """Raises InputError for an argument such as `--config.gat.bogus=1` that names no setting."""
    for argument in arguments:
        name = argument.lstrip("-").partition("=")[0]
        group, *parts = name.split(".")
        place: Any = groups.get(group)
        for part in parts if group in groups else ():
            if not isinstance(place, ConfigDict) or part not in place:
                raise InputError(f'command line: no setting "{name}"; see --help')
            place = place[part]


def one_line(error: Exception) -> str:
    """Returns an error as one line of text."""
    if isinstance(error, InputError):
        return str(error)
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
