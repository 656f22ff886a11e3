"""Python files of users: experiments (`train --config`) and models (`predict --model-file`)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from runpy import run_path
from traceback import extract_tb

from ml_collections import ConfigDict

from clutrr_jax.models import MODELS
from generator.errors import InputError, one_line


def load_experiment(file: str) -> ConfigDict:
    """Executes an experiment file and returns `get_config()`."""
    with _errors_of(file, "an experiment with get_config()"):
        content = run_path(file)
        if not callable(content.get("get_config")):
            raise InputError(f"{file}: no function get_config(), which returns the settings")
        config = content["get_config"]()
        if not isinstance(config, ConfigDict):
            raise TypeError(f"get_config() returned {config!r}, not a ConfigDict")
    return config


def register_models(file: str) -> None:
    """Executes a file that registers models, such as an experiment."""
    before = dict(MODELS)
    with _errors_of(file, "a file that calls clutrr_jax.register"):
        content = run_path(file)
        if "get_config" in content:  # an experiment may register its models there
            content["get_config"]()
    if all(spec is before.get(name) for name, spec in MODELS.items()):
        raise InputError(f"{file}: registers no model, expected a call of clutrr_jax.register")


@contextmanager
def _errors_of(file: str, expected: str) -> Iterator[None]:
    """Reports errors in a Python file, which is executed, as one line with their place."""
    if not Path(file).is_file():
        problem = "a folder" if Path(file).is_dir() else "no such file"
        raise InputError(f"{file or repr(file)}: {problem}, expected {expected}")
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        frames = extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == file]
        line = getattr(error, "lineno", None) or (lines or [None])[-1]
        where = f", line {line}" if line else ""
        raise InputError(f"{file}{where}: {one_line(error)}; expected {expected}") from None
