"""Floating-point operations of the matrix products in a function, counted in what JAX traces.

XLA's own cost analysis counts the body of a scan once, and so a recurrent model by its first step.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import jax
from jax.extend.core import jaxprs_in_params


def matmul_flops(function: Callable[..., Any], *arguments: Any) -> int:
    """Of one call: 2 for every multiply-add of every `dot_general`, those in scans every time."""
    return _count(jax.make_jaxpr(function)(*arguments).jaxpr)


def _count(jaxpr: Any) -> int:
    total = 0
    for equation in jaxpr.eqns:
        times = equation.params["length"] if equation.primitive.name == "scan" else 1
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            total += 2 * prod(equation.outvars[0].aval.shape) * prod(left[d] for d in contracted)
        for inner in jaxprs_in_params(equation.params):
            total += times * _count(inner)
    return total
