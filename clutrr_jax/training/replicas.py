"""Replicas: the same program for several seeds, whose states are stacked along a leading axis.

Replicas are distributed over the devices. On an accelerator the replicas of one device are
vectorized; on a CPU they run one after another in the same program, because vectorizing three of
them halves the stories per second.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from clutrr_jax.training import distributed

REPLICA = PartitionSpec("replica")
REPLICATED = PartitionSpec()


class Replicas:
    """Placement of R replicas on the devices.

    The devices form groups: each group trains some of the replicas, and its devices share the
    microbatches of every batch. The number of replicas is rounded up to a multiple of the groups;
    `gather` drops the additional ones, whose seeds [R] are the last ones.
    """

    def __init__(self, count: int, first_seed: int = 0, microbatches: int = 1):
        devices = jax.devices()
        self.count = count
        self.devices_per_group = math.gcd(microbatches, len(devices))
        groups = len(devices) // self.devices_per_group
        # Every host takes part in each program, if only with a replica that is dropped.
        groups = groups if jax.process_count() > 1 else min(count, groups)
        devices = devices[: groups * self.devices_per_group]
        self.mesh = Mesh(
            np.array(devices).reshape(groups, -1),
            ("replica", "data"),
            axis_types=(AxisType.Auto, AxisType.Auto),
        )
        self.sequential = devices[0].platform == "cpu"
        self.seeds = np.arange(-(-count // groups) * groups, dtype=np.int32) + first_seed

    def map(
        self,
        function: Callable[..., Any],
        shared: tuple,
        own: tuple,
        out_specs: Any = REPLICA,
        donate: tuple = (),
    ) -> Callable[..., Any]:
        """Lifts a function of one replica to all replicas, as a jitted program.

        Its first arguments are shared by all replicas, the last ones have a leading replica axis,
        as all outputs have. Each has a PartitionSpec, in which "data" splits an axis over a group;
        in the function, `jax.lax.psum(x, "data")` sums over the devices of the group. The buffers
        of the arguments `donate` are reused.
        """

        def on_device(*arguments: Any) -> Any:
            def one(of_replica: tuple) -> Any:
                return function(*arguments[: len(shared)], *of_replica)

            of_all = arguments[len(shared) :]
            return jax.lax.map(one, of_all) if self.sequential else jax.vmap(one)(of_all)

        sharded = jax.shard_map(
            on_device, mesh=self.mesh, in_specs=shared + own, out_specs=out_specs, check_vma=False
        )
        return jax.jit(sharded, donate_argnums=donate)

    def place(self, tree: Any, spec: PartitionSpec = REPLICA) -> Any:
        """Moves host arrays to the devices, split as `spec` says."""
        return distributed.put(tree, NamedSharding(self.mesh, spec))

    def gather(self, array: Any) -> np.ndarray:
        """First `count` rows of an array [R, ...], on every host."""
        return distributed.gather(array)[: self.count]
