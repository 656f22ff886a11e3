"""Settings of a sweep: numbers that have one value for each of its points.

A sweep trains all of its points in one program, see `clutrr_jax.training.replicas`. In that program
a `Swept` number stands in the place of a Python number. Arithmetic with Python numbers is that of
Python, point by point, so that a point computes what it computes alone. As an operand of a JAX
array, the number is that of the point for which `at_point` traces.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from flax.traverse_util import flatten_dict, unflatten_dict


class _Trace(NamedTuple):
    """What a function is traced for."""

    points: Sequence[int]  # those that run this program
    index: Any  # the traced index of one of them
    numbers: dict[tuple[float, ...], jax.Array]  # by the values at all points


_traces: list[_Trace] = []  # the innermost last


class Swept:
    """A number with one value for each point of a sweep."""

    dtype = np.dtype(np.float32)  # for functions of JAX that ask before they convert

    def __init__(self, values: Any):
        self.values = tuple(values)

    @property
    def _possible(self) -> list[float]:
        """The values at the points that run this program."""
        return [self.values[i] for i in _traces[-1].points] if _traces else [*self.values]

    def __jax_array__(self) -> jax.Array:
        if not _traces or len(set(self._possible)) == 1:
            return jnp.asarray(self._possible[0])
        _, index, numbers = _traces[-1]
        if self.values not in numbers:
            numbers[self.values] = jnp.asarray(self.values)[index]
        return numbers[self.values]

    def __bool__(self) -> bool:
        """Whether it is not 0, which is the same at all points that run a program."""
        return any(self._possible)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Swept):
            return self.values == other.values
        equal = {value == other for value in self._possible}
        if _traces and len(equal) > 1:
            raise TypeError(
                f"a swept setting ({self}) cannot be compared with {other!r}: its points differ in "
                "the result, but run one program; compare it with 0, or do not mark it `sweeps`"
            )
        return equal == {True}

    def __hash__(self) -> int:
        return hash(self.values)

    def __repr__(self) -> str:
        return ",".join(map(repr, self.values))


def at_point(
    function: Callable[..., Any], sweep: Sequence[Mapping[str, float]], index: Any, *arguments: Any
) -> Any:
    """Calls a function for the point of a sweep with this index, which may be traced.

    A condition such as `if penalty:` makes another program: points that differ in which of their
    numbers are 0 have branches of their own.
    """
    if not sweep:
        return function(*arguments)
    kinds = [tuple(map(bool, point.values())) for point in sweep]
    unique = list(dict.fromkeys(kinds))

    def branch(kind: tuple[bool, ...], *arguments: Any) -> Any:
        members = [i for i, other in enumerate(kinds) if other == kind]
        numbers: dict[tuple[float, ...], jax.Array] = {}
        # The first trace finds the numbers. The second one has them as arguments of its loops, in
        # which XLA treats them like constants.
        with _tracing(_Trace(members, index, numbers)):
            jax.eval_shape(lambda *own: function(*own), *arguments)  # JAX caches by identity
        numbers = {values: jnp.asarray(values)[index] for values in numbers}
        with _tracing(_Trace(members, index, numbers)):
            return function(*arguments)

    branches = [partial(branch, kind) for kind in unique]
    return jax.lax.switch(
        jnp.asarray([unique.index(kind) for kind in kinds])[index], branches, *arguments
    )


@contextmanager
def _tracing(trace: _Trace) -> Iterator[None]:
    _traces.append(trace)
    try:
        yield
    finally:
        _traces.pop()


def _arithmetic(function: Callable[[Any, Any], Any], swap: bool) -> Callable[[Swept, Any], Any]:
    def apply(own: Swept, other: Any) -> Any:
        if not isinstance(other, Swept | Real):
            return NotImplemented  # of an array, which converts this number
        others = other.values if isinstance(other, Swept) else [other] * len(own.values)
        return Swept(map(function, *((others, own.values) if swap else (own.values, others))))

    return apply


def in_single_precision(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """Applies a function to two numbers, of a sweep or not, as XLA does to two constants."""

    def rounded(a: float, b: float) -> float:
        return float(function(np.float32(a), np.float32(b)))

    if not isinstance(a, Swept):
        return _arithmetic(rounded, True)(b, a) if isinstance(b, Swept) else rounded(a, b)
    return _arithmetic(rounded, False)(a, b)


for _name in ("neg", "pos", "abs"):
    _unary = getattr(operator, _name)
    setattr(Swept, f"__{_name}__", lambda own, of=_unary: Swept(map(of, own.values)))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    for _swap in (False, True):
        _method = _arithmetic(getattr(operator, _name), _swap)
        setattr(Swept, f"__{'r' * _swap}{_name}__", _method)


def points(settings: Mapping[str, Any]) -> list[dict[str, float]]:
    """Returns the swept settings at each point by dotted name; without a sweep, no points."""
    values = flatten_dict(settings, sep=".").items()
    swept = {name: value.values for name, value in values if isinstance(value, Swept)}
    return [dict(zip(swept, point, strict=True)) for point in zip(*swept.values(), strict=True)]


def of_point(settings: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Returns the settings of a point, and without a sweep the same settings."""
    return with_values(settings, dict(enumerate(points(settings))).get(index, {}))


def with_values(settings: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings with other values, by dotted name."""
    flat = flatten_dict(dict(settings), sep=".", keep_empty_nodes=True)
    return unflatten_dict(flat | dict(values), sep=".")


def label(point: Mapping[str, float]) -> str:
    """Returns the name of a point, such as "learning_rate=.001"."""
    named = {name.removeprefix("train."): repr(value) for name, value in point.items()}
    return ", ".join(f"{name}={re.sub('^0(?=[.])', '', value)}" for name, value in named.items())


class SweptDropout(nnx.Dropout):
    """`nnx.Dropout` with a rate of a sweep.

    XLA replaces a division by a constant by a product with its reciprocal. So does this layer.
    """

    def __call__(self, inputs: jax.Array, **_: Any) -> jax.Array:
        if self.rate == 0 or self.deterministic:
            return inputs
        shape = list(inputs.shape)
        for axis in self.broadcast_dims:
            shape[axis] = 1
        keep: Any = 1.0 - self.rate
        kept = jax.random.bernoulli(self.rngs(), keep, tuple(shape))  # type: ignore[misc]
        factor: Any = in_single_precision(operator.truediv, 1.0, keep)
        return jnp.where(kept, inputs * factor, 0)
