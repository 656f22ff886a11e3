"""Loading of experiment files for `launch.py`."""

from pathlib import Path
from runpy import run_path
from traceback import extract_tb

from ml_collections import ConfigDict

from generator.errors import InputError, first_line


def load_experiment(file: str) -> ConfigDict:
    """Executes an experiment file and returns `get_config()`.

    Raises:
      InputError: an error in the file, or it is no experiment.
    """
    if not Path(file).is_file():
        raise InputError(f"{file}: no such file, expected one such as experiments/single.py")
    try:
        config = run_path(file)["get_config"]()
        if not isinstance(config, ConfigDict):
            raise TypeError(f"get_config() returned {config!r}, not a ConfigDict")
    except InputError:
        raise
    except Exception as error:
        frames = extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == file]
        line = getattr(error, "lineno", None) or (lines or [None])[-1]
        where = f", line {line}" if line else ""
        raise InputError(
            f"{file}{where}: {one_line(error)}; expected an experiment with get_config()"
        ) from None
    return config


def one_line(error: Exception) -> str:
    """Returns an error as one line of text."""
    if isinstance(error, InputError):
        return str(error)
    # A locked ConfigDict adds all of its settings to the message.
    line = first_line(error).partition(" Other fields present")[0]
    return f"{type(error).__name__}: {line}"
