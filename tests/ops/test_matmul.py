"""Law: the hand-written matrix product equals its reference in values and gradients."""

import jax
import numpy as np
import pytest

from clutrr_jax.ops.matmul import matmul_fast, matmul_reference


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("bfloat16", 0.1)])
def test_matmul_equals_its_reference(dtype: str, tolerance: float) -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    x, kernel, cotangent = (
        jax.random.normal(key, shape)
        for key, shape in zip(keys, [(2, 4, 6), (6, 5), (2, 4, 5)], strict=True)
    )
    results = []
    for function in (matmul_fast, matmul_reference):
        value, backward = jax.vjp(lambda x, k, f=function: f(x, k, dtype), x, kernel)
        results.append((value, *backward(cotangent)))
    for found, expected in zip(*results, strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=tolerance)
