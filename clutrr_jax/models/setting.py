"""Settings: default, meaning and range, stated in one place for each model."""

import math
import operator
from collections.abc import Mapping
from typing import Any, NamedTuple

from flax.traverse_util import flatten_dict
from ml_collections import ConfigDict

from clutrr_jax.models.swept import Swept
from generator.errors import InputError


class Setting(NamedTuple):
    """A setting of a model or of a run. Its type is that of the default.

    Attributes:
      default: the value that it has if nobody sets it.
      meaning: one line for `--help`.
      at_least, above, at_most, below: bounds of a number. A number with a bound is finite.
      choices: the accepted words.
      sweeps: whether a sweep may have it: a number that changes no shape.
    """

    default: Any
    meaning: str = ""
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    sweeps: bool = False

    @property
    def _bounds(self) -> dict[str, float]:
        """The bounds that it has, by name."""
        return {name: bound for name in _COMPARE if (bound := getattr(self, name)) is not None}

    @property
    def range(self) -> str:
        """Accepted values in words; empty if there is no limit."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        return " and ".join(f"{name.replace('_', ' ')} {x}" for name, x in self._bounds.items())

    def check(self, name: str, value: Any) -> None:
        """Raises InputError if a value is not in the range. None, a value that is not set, is."""
        if isinstance(value, Swept):
            for one in value.values:
                self.check(name, one)
            return
        if value is None or not self.range:
            return
        if self.choices:
            valid, shown = value in self.choices, f'"{value}"'
        else:
            bounds = self._bounds.items()
            valid, shown = all(_COMPARE[which](value, bound) for which, bound in bounds), value
            valid = valid and math.isfinite(value)
        if not valid:
            raise InputError(f"{name} {shown}: expected {self.range}")


_COMPARE = {
    "at_least": operator.ge, "above": operator.gt, "at_most": operator.le, "below": operator.lt
}  # fmt: skip

# Settings by name, or groups of them.
Settings = Mapping[str, Any]


def as_settings(values: Any) -> dict[str, Any]:
    """Returns settings, where a plain value stands for a setting with this default and any
    value."""
    return {
        name: value
        if isinstance(value, Setting)
        else as_settings(value)
        if isinstance(value, Mapping | ConfigDict)
        else Setting(value)
        for name, value in values.items()
    }


def defaults(settings: Settings) -> dict[str, Any]:
    """Returns the default of each setting."""
    return {
        name: value.default if isinstance(value, Setting) else defaults(value)
        for name, value in settings.items()
    }


def check_values(settings: Settings, values: Mapping[str, Any], prefix: str = "") -> None:
    """Raises InputError for the first value that is not in the range of its setting. `prefix` is
    that of the names in the message, such as `gat.`."""
    found = flatten_dict(values, sep=".")
    for name, setting in flatten_dict(settings, sep=".").items():
        setting.check(f"{prefix}{name}", found[name])
