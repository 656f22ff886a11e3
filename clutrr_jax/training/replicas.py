"""Replicas: the same program for many seeds at once, the seeds being the leading axis of all state.

The replicas are spread over the devices, or over groups of devices that share each batch. On an
accelerator those of one device are vectorised; on a CPU, where vectorising three of them halves the
stories per second, they run one after another in the same program.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from clutrr_jax.training import distributed


class Replicas:
    """Where and how the replicas run. Their number is rounded up to a multiple of the groups of
    devices; the results of the replicas added that way are dropped by `keep`.

    A batch may consist of several parts. What they are is a setting, so that a run is the same on
    any machine; the devices of a group share them, as many as divide both the parts and all
    devices. All devices of a group hold the same state.
    """

    def __init__(self, count: int, first_seed: int = 0, parts: int = 1):
        devices = jax.devices()
        self.count = count
        self.parts = parts  # of each batch
        self.sharing = math.gcd(parts, len(devices))  # devices of a group
        groups = len(devices) // self.sharing
        # With several hosts each has a part in the program, be it a replica that is dropped.
        groups = groups if distributed.several() else min(count, groups)
        devices = devices[: groups * self.sharing]
        self.mesh = jax.make_mesh(
            (groups, self.sharing),
            ("replica", "data"),
            devices=devices,
            axis_types=(AxisType.Auto, AxisType.Auto),
        )
        self.sequential = devices[0].platform == "cpu"
        self.seeds = np.arange(-(-count // groups) * groups, dtype=np.int32) + first_seed
        self.sharding = NamedSharding(self.mesh, PartitionSpec("replica"))

    def map(self, one: Callable[..., Any]) -> Callable[..., Any]:
        """`one(shared, *each)` for one replica -> a jitted `all(shared, *each)`, where every array
        of `each` and of the result has a leading replica axis."""

        def some(shared: Any, *each: Any) -> Any:
            return self.all(partial(one, shared), *each)

        return self.spread(some)

    def spread(self, some: Callable[..., Any], donate: bool = False) -> Callable[..., Any]:
        """`some(shared, *each)` for the replicas of one device, every array of `each` and of the
        result having a leading replica axis -> the same, jitted, for all replicas.

        Args:
          some: of one device.
          donate: the first of `each` is donated.
        """

        def everywhere(shared: Any, *each: Any) -> Any:
            replica = PartitionSpec("replica")
            spread = jax.shard_map(
                some,
                mesh=self.mesh,
                in_specs=(PartitionSpec(), *[replica] * len(each)),
                out_specs=replica,
                check_vma=False,
            )
            return spread(shared, *each)

        donated = (1,) if donate else ()
        return jax.jit(everywhere, donate_argnums=donated, out_shardings=self.sharding)

    def all(self, one: Callable[..., Any], *each: Any) -> Any:
        """`one` for each row of arrays with a common first axis, on one device."""
        if self.sequential:
            return jax.lax.map(lambda x: one(*x), each)
        return jax.vmap(one)(*each)

    def own(self, array: jax.Array) -> jax.Array:
        """Within `map`: this device's rows [R / sharing, ...] of what its group shares [R, ...]."""
        rows = array.reshape(self.sharing, -1, *array.shape[1:])
        return rows[jax.lax.axis_index("data")]

    def add(self, tree: Any) -> Any:
        """Within `map`: the sums over the devices of a group, on each of them."""
        return jax.lax.psum(tree, "data")

    def place(self, tree: Any) -> Any:
        """Arrays with a leading replica axis -> the devices of their replicas."""
        return distributed.place(tree, self.sharding)

    def share(self, tree: Any) -> Any:
        """Arrays that all replicas read -> every device."""
        return distributed.place(tree, NamedSharding(self.mesh, PartitionSpec()))

    def keep(self, array: Any) -> np.ndarray:
        """The first `count` rows, those that were asked for, on every host."""
        return distributed.gather(array)[: self.count]
