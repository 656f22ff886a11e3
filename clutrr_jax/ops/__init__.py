"""Kernels with a hand-written version next to a plain reference.

- `lstm`: recurrence of several LSTMs in one scan
- `graph_attention`: one layer of graph attention with edge features
- `matmul`: matrix product in bfloat16 with sums in float32
- `triangular_attention`: attention over the third person of a pair

Each function runs the hand-written version on a CPU, where it was measured to train faster
(docs/performance.md), and the reference on accelerators.
"""

import jax


def use_fast_kernels() -> bool:
    """Returns whether the hand-written kernels run, which is on CPUs only."""
    return jax.default_backend() == "cpu"
