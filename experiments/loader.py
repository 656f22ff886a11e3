"""Loading of experiment files for `launch.py`."""

from collections.abc import Sequence
from pathlib import Path
from runpy import run_path
from traceback import extract_tb

from flax.traverse_util import flatten_dict
from ml_collections import ConfigDict

from clutrr_jax.experiment import replicas
from clutrr_jax.models import MODELS
from clutrr_jax.settings import with_models
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
    return _choose_models(config, arguments)


def flag_name(argument: str) -> str:
    """Returns the name in an argument such as `--config.seed=1`."""
    return argument.lstrip("-").partition("=")[0]


def _choose_models(config: ConfigDict, arguments: Sequence[str]) -> ConfigDict:
    """Returns the settings of an experiment with those of the models that the arguments choose."""
    if "models" not in config:
        return config
    given = {flag_name(argument): argument.partition("=")[2] for argument in arguments}
    for name in ("models", "scale"):
        if f"config.{name}" in given and name in config:
            config[name] = given[f"config.{name}"]
    return with_models(config, replicas(config))


def check_names(arguments: Sequence[str], groups: dict[str, ConfigDict]) -> None:
    """Raises InputError for an argument such as `--config.gat.bogus=1` that names no setting."""
    known = flatten_dict({name: group.to_dict() for name, group in groups.items()}, sep=".")
    for argument in arguments:
        name = flag_name(argument)
        if name.partition(".")[0] in groups and name not in known:
            group = name.rpartition(".")[0]
            near = [other for other in known if other.rpartition(".")[0] == group and "." in group]
            expected = f"expected one of {', '.join(near)}" if near else "see --help"
            if (model := f"{name}.".split(".")[1]) in MODELS and model not in groups["config"]:
                expected = f"expected {model} among --config.models"
            raise InputError(f'command line: no setting "{name}"; {expected}')
