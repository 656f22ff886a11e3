"""Replicas: the same program for many seeds at once, the seeds being the leading axis of all state.

The replicas are spread over the devices. On an accelerator those of one device are vectorised; on a
CPU, where vectorising three of them halves the stories per second, they run one after another in
the same program.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from generator.errors import InputError


class Replicas:
    """Where and how the replicas run. Their number is rounded up to a multiple of the devices; the
    results of the replicas added that way are dropped by `keep`."""

    def __init__(self, count: int, first_seed: int = 0, data_devices: int = 1):
        devices = jax.devices()
        if data_devices < 1 or len(devices) % data_devices:
            raise InputError(
                f"train.data_devices {data_devices}: expected a divisor of the number of devices, "
                f"{len(devices)}"
            )
        groups = min(count, len(devices) // data_devices)
        devices = devices[: groups * data_devices]
        self.count = count
        self.data_devices = data_devices
        self.mesh = jax.make_mesh(
            (groups, data_devices),
            ("replica", "data"),
            devices=devices,
            axis_types=(AxisType.Auto, AxisType.Auto),
        )
        self.in_turn = devices[0].platform == "cpu"
        self.seeds = np.arange(-(-count // groups) * groups) + first_seed
        self.sharding = NamedSharding(self.mesh, PartitionSpec("replica"))

    def map(self, one: Callable[..., Any], donate: bool = False) -> Callable[..., Any]:
        """`one(shared, *each)` for one replica -> a jitted `all(shared, *each)`, where every array
        of `each` and of the result has a leading replica axis. The first of `each` is donated."""

        def some(shared: Any, *each: Any) -> Any:
            if self.in_turn:
                return jax.lax.map(lambda x: one(shared, *x), each)
            return jax.vmap(lambda *x: one(shared, *x))(*each)

        def everywhere(shared: Any, *each: Any) -> Any:
            replica = PartitionSpec("replica")
            spread = jax.shard_map(
                some,
                mesh=self.mesh,
                in_specs=(PartitionSpec(), *[replica] * len(each)),
                out_specs=replica,
                axis_names={"replica"},
                check_vma=False,
            )
            return spread(shared, *each)

        donated = (1,) if donate else ()
        return jax.jit(everywhere, donate_argnums=donated, out_shardings=self.sharding)

    def divide(self, batch: Any) -> Any:
        """A batch, its arrays divided by their first axis among the devices that share it."""
        if self.data_devices == 1:
            return batch
        return jax.lax.with_sharding_constraint(batch, PartitionSpec("data"))

    def place(self, tree: Any) -> Any:
        """Arrays with a leading replica axis -> the devices of their replicas."""
        return jax.device_put(tree, self.sharding)

    def share(self, tree: Any) -> Any:
        """Arrays that all replicas read -> every device."""
        return jax.device_put(tree, NamedSharding(self.mesh, PartitionSpec()))

    def keep(self, array: Any) -> np.ndarray:
        """The first `count` rows: those that were asked for."""
        return np.asarray(array)[: self.count]

    def keys(self) -> jax.Array:
        """One random key for each replica, that of its own seed."""
        return self.place(jax.vmap(jax.random.key)(jnp.asarray(self.seeds)))
