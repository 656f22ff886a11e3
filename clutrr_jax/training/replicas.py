"""Replicas: the same program for several seeds, and for several points of a sweep, whose states are
stacked along a leading axis.

Replicas are distributed over the devices. On an accelerator the replicas of one device are
vectorized; on a CPU they run one after another in the same program, because vectorizing three of
them halves the stories per second.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from clutrr_jax.models.swept import at_point
from clutrr_jax.training import distributed

REPLICA = PartitionSpec("replica")
REPLICATED = PartitionSpec()


class Replicas:
    """Placement of R replicas on the devices: a number of them, with their own seeds, for each
    point of a sweep.

    The devices form groups: each group trains some of the replicas, and its devices share the
    microbatches of every batch. The number of replicas is rounded up to a multiple of the groups;
    `gather` drops the additional ones, whose seeds [R] are the last ones.
    """

    def __init__(
        self,
        seeds: int,
        first_seed: int = 0,
        microbatches: int = 1,
        sweep: Sequence[Mapping[str, float]] = (),
    ):
        devices, points = jax.devices(), len(sweep) or 1
        self.count, self.per_point, self.sweep = seeds * points, seeds, sweep
        self.devices_per_group = math.gcd(microbatches, len(devices))
        groups = len(devices) // self.devices_per_group
        # Every host takes part in each program, if only with a replica that is dropped.
        groups = groups if jax.process_count() > 1 else min(self.count, groups)
        devices = devices[: groups * self.devices_per_group]
        self.mesh = Mesh(
            np.array(devices).reshape(groups, -1),
            ("replica", "data"),
            axis_types=(AxisType.Auto, AxisType.Auto),
        )
        self.sequential = devices[0].platform == "cpu"
        self.per_device = -(-self.count // groups)
        index = np.arange(self.per_device * groups, dtype=np.int32)
        self.point = np.minimum(index // seeds, points - 1)  # of each replica
        self.seeds = index - seeds * self.point + first_seed

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
                point, *own = of_replica
                return at_point(function, self.sweep, point, *arguments[: len(shared)], *own)

            first = jax.lax.axis_index("replica") * self.per_device
            points = jax.lax.dynamic_slice_in_dim(self.point, first, self.per_device)
            of_all = points, *arguments[len(shared) :]
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
