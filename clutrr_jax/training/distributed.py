"""One program on several hosts, with one process per host.

Every host runs the same command on the devices of all hosts. The first one, the primary, writes all
files. If a host ends early, JAX ends the other processes: at once, or after `HEARTBEAT_SECONDS`
without a sign of life. The same command on all hosts resumes from the last checkpoint.

Functions marked "collective" must be called by every host. With one process they do no
communication.
"""

import json
import os
import re
import sys
import time
import traceback
from typing import Any, NoReturn

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Sharding

from generator.errors import InputError, first_line

HEARTBEAT_SECONDS = 30
EXIT_BARRIER_SECONDS = 86_400  # the other hosts wait at their end while the primary writes reports


def initialize(coordinator: str, host_count: int | None, host_index: int | None) -> None:
    """Connects the hosts before any other JAX function. Raises InputError if that fails.

    `coordinator` is HOST:PORT of the primary, whose index is 0; or "auto", to detect all arguments
    through Slurm, Cloud TPU, GKE, Kubernetes or MPI.
    """
    # SIGTERM is handled by `preemption` instead.
    jax.config.update("jax_enable_preemption_service", False)
    detect = coordinator == "auto"
    if not detect and not re.fullmatch(r".+:\d+", coordinator):
        raise InputError(f"--hosts={coordinator}: expected auto or HOST:PORT")
    try:
        jax.distributed.initialize(
            None if detect else coordinator,
            num_processes=host_count,
            process_id=host_index,
            cluster_detection_method=None if detect else "deactivate",
            heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
            shutdown_timeout_seconds=EXIT_BARRIER_SECONDS,
        )
    except (RuntimeError, ValueError, OSError) as error:
        raise InputError(
            f"--hosts={coordinator}: the hosts did not connect ({first_line(error)})"
        ) from None


def is_primary() -> bool:
    """Returns whether this host writes the files."""
    return jax.process_index() == 0


def any_host(flag: bool) -> bool:
    """Returns whether the flag is set on any host. Collective."""
    return bool(multihost_utils.process_allgather(np.array(flag)).any())


def gather(array: Any) -> np.ndarray:
    """Returns a whole array that may be sharded over the devices of all hosts. Collective."""
    if isinstance(array, jax.Array) and not array.is_fully_addressable:
        array = multihost_utils.process_allgather(array, tiled=True)
    return np.asarray(array)


def broadcast(tree: Any) -> Any:
    """Returns the arrays of the primary. Collective, with the same shapes and dtypes everywhere."""
    return multihost_utils.broadcast_one_to_all(tree)


def put(tree: Any, sharding: Sharding) -> Any:
    """Moves arrays to the devices of all hosts. Every host passes the whole arrays."""
    if jax.process_count() == 1:
        return jax.device_put(tree, sharding)
    return jax.tree.map(
        lambda x: jax.make_array_from_callback(np.shape(x), sharding, np.asarray(x).__getitem__),
        tree,
    )


def barrier(name: str) -> None:
    """Waits until all hosts have reached the barrier of that name. Collective."""
    multihost_utils.sync_global_devices(name)


def assert_same(settings: dict[str, Any]) -> None:
    """Raises InputError on every host if a setting differs between them. Collective."""
    text = json.dumps(settings).encode()
    size = int(multihost_utils.process_allgather(np.array(len(text))).max())
    padded = np.frombuffer(text.ljust(size), np.uint8)
    texts = multihost_utils.process_allgather(padded).reshape(-1, size)
    everyone = [json.loads(text.tobytes()) for text in texts]
    for name in sorted(set().union(*everyone)):
        if any(of_host.get(name) != everyone[0].get(name) for of_host in everyone):
            raise InputError(
                f'{name} is "{settings.get(name)}" on host {jax.process_index()}, expected the '
                "same on all hosts"
            )


def exit_with_error(message: str) -> NoReturn:
    """Prints a mistake of the user in one line and exits with code 2."""
    print(f"error: {message}", file=sys.stderr, flush=True)
    _exit_now(2)
    sys.exit(2)


def abort(error: BaseException) -> None:
    """Prints a traceback and exits, if there are other hosts; else does nothing."""
    if jax.distributed.is_initialized():
        traceback.print_exception(error)
        _exit_now(1)


def _exit_now(code: int) -> None:
    """Exits without the barrier at the end of a process, at which the other hosts are not."""
    if jax.distributed.is_initialized():
        if is_primary():
            time.sleep(2)  # the others lose their connection: they may have a message to print
        os._exit(code)
