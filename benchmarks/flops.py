"""Floating-point operations of the matrix products in a function, counted in its jaxpr.

XLA's cost analysis counts the body of a scan once, so it counts one step of a recurrent model.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import jax
from jax.extend.core import jaxprs_in_params


def matmul_flops(function: Callable[..., Any], *arguments: Any) -> int:
    """Returns the FLOPs of every `dot_general` in one call: two per multiply-add.

    A product inside a scan counts once per iteration.
    """
    return _count(jax.make_jaxpr(function)(*arguments).jaxpr)


def _count(jaxpr: Any) -> int:
    total = 0
    for equation in jaxpr.eqns:
        iterations = equation.params["length"] if equation.primitive.name == "scan" else 1
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            total += 2 * prod(equation.outvars[0].aval.shape) * prod(left[d] for d in contracted)
        for inner in jaxprs_in_params(equation.params):
            total += iterations * _count(inner)
    return total
