"""Loading of experiment files for `launch.py`."""

from collections.abc import Sequence
from pathlib import Path
from runpy import run_path
from traceback import extract_tb

from ml_collections import ConfigDict

from clutrr_jax.command_line import choose_models
from generator.errors import InputError, one_line


def load_experiment(file: str, arguments: Sequence[str] = ()) -> ConfigDict:
    """Executes an experiment file and returns `get_config()`.

    Args:
      file: the experiment.
      arguments: of the command line. The experiment has the settings of the models that they
        choose.
    Raises:
      InputError: an error in the file, or it is no experiment, or a wrong model.
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
    return choose_models(config, arguments)
