"""Several processes, one on each host, that run one program: they start together, agree on what
they do next, and end together.

Every host runs the same commands on the devices of all. The first one writes all files. A host
that has ended, for whatever reason, is noticed by the others within `SILENCE` seconds, and they end
too, each with one line; the same command on all hosts goes on from the last checkpoint.
"""

import atexit
import ctypes
import hashlib
import os
import re
import signal
import sys
import threading
import time
import traceback
from typing import Any, NoReturn

import jax
import numpy as np
from jax._src import distributed  # the store of the coordinator has no public name
from jax.experimental import multihost_utils
from jax.sharding import Sharding

from generator.errors import InputError

SILENCE = 30  # seconds, after which a host that says nothing is taken for dead
CODE = os.EX_UNAVAILABLE  # 69: of a host that ended because another one had
_count, _here = 1, 0  # hosts, and the number of this one
_code = CODE  # with which it ends when another one has ended
_over = threading.Event()  # this program has come to its end
_LAST = "clutrr/last/"  # in the store: the last words of each host
_held, _told = -1, 0  # the file that holds back, and how much of it was written


def start(coordinator: str, count: int | None, number: int | None) -> None:
    """Joins the other hosts; comes before anything else that JAX does.

    Args:
      coordinator: HOST:PORT of the first host; or "auto", where Slurm, Cloud TPU, GKE or MPI tell
        JAX all three.
      count: of hosts.
      number: of this one, from 0.
    Raises:
      InputError: they do not come together.
    """
    # A scheduler's SIGTERM is for `preemption`.
    jax.config.update("jax_enable_preemption_service", False)
    given: dict[str, Any] = {}
    if coordinator != "auto":
        if not re.fullmatch(r".+:\d+", coordinator):
            raise InputError(f"--hosts={coordinator}: expected auto or HOST:PORT")
        given = {"coordinator_address": coordinator, "num_processes": count, "process_id": number}
        given["cluster_detection_method"] = "deactivate"
    try:
        jax.distributed.initialize(
            **given, heartbeat_timeout_seconds=SILENCE, shutdown_timeout_seconds=86400
        )
    except (RuntimeError, ValueError, OSError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise InputError(f"--hosts={coordinator}: the hosts did not meet ({reason})") from None
    global _count, _here
    _count, _here = jax.process_count(), jax.process_index()
    _hold_back()
    threading.Thread(target=_watch, daemon=True).start()
    atexit.register(_part)


def several() -> bool:
    """Whether there is more than this host."""
    return _count > 1


def first() -> bool:
    """Whether this host is the one that writes."""
    return _here == 0


def any_of(flag: bool) -> bool:
    """Whether it is so on any host. All of them must ask."""
    if not several():
        return flag
    return bool(multihost_utils.process_allgather(np.array(flag)).any())


def gather(array: Any) -> np.ndarray:
    """An array that is spread over the devices of all hosts. All of them must ask."""
    if isinstance(array, jax.Array) and not array.is_fully_addressable:
        array = multihost_utils.process_allgather(array, tiled=True)
    return np.asarray(array)


def from_first(tree: Any) -> Any:
    """Arrays as the first host has them. All must ask, with the same shapes and types."""
    return tree if not several() else multihost_utils.broadcast_one_to_all(tree)


def place(tree: Any, sharding: Sharding) -> Any:
    """Arrays that every host has whole -> the devices of all hosts; each host copies to its own
    devices what these are to hold. Random keys have to be there already."""

    def put(x: Any) -> jax.Array:
        if isinstance(x, jax.Array) and x.sharding == sharding:
            return x
        if not several():
            return jax.device_put(x, sharding)
        x = np.asarray(x)
        return jax.make_array_from_callback(x.shape, sharding, lambda index: x[index])

    return jax.tree.map(put, tree)


def meet(name: str) -> None:
    """Waits until all hosts are here: the others, while the first one writes."""
    if several():
        _store().wait_at_barrier(f"clutrr/{name}", 86_400_000)


def check(settings: dict[str, Any]) -> None:
    """All hosts are to have the same settings.

    Raises:
      InputError: they are not those of the first host.
    """
    for name, value in sorted(settings.items()):
        mine = np.frombuffer(hashlib.sha256(repr(value).encode()).digest(), np.uint8)
        if not np.array_equal(from_first(mine), mine):
            raise InputError(f'{name} is "{value}" on this host, expected what it is on the first')


def leave(message: str) -> NoReturn:
    """Ends this process with a mistake of the user's; the other hosts are told, and end too."""
    print(f"error: {message}", file=sys.stderr, flush=True)
    if not several():
        sys.exit(2)
    _tell(message, 2)


def fail(error: BaseException) -> None:
    """After an error that may come of another host's end: this process ends, for that reason if
    it is so; if not, the others are told. Does nothing where there are no others."""
    if several():
        if not isinstance(error, KeyboardInterrupt):
            time.sleep(SILENCE + 5)
        traceback.print_exception(error)
        _tell(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}", 1)


def _store() -> Any:
    """Of names and texts, which the first host keeps for all."""
    return distributed.global_state.client


def _tell(message: str, code: int) -> NoReturn:
    """Leaves last words, and ends this process once the others have had time to read them."""
    global _code
    _code = code
    _store().key_value_set(f"{_LAST}{_here}", message, allow_overwrite=True)
    time.sleep(5)  # they look every second; with the first host the store is gone
    os._exit(code)


def _watch() -> None:
    """Looks every second for another host's last words, and lets go what C++ has written."""
    while not _over.wait(1):
        try:
            words = dict(_store().key_value_dir_get(_LAST))
        except Exception:  # the first host has ended: `_aborted` tells
            continue
        for name, message in words.items():
            if name != f"{_LAST}{_here}":
                _end(f"host {name.removeprefix(_LAST)} has ended: {message}")
        _let_go()


def _end(reason: str) -> NoReturn:
    """Ends this process since another host has ended, if that is not for what this one told."""
    if _code == CODE:
        again = "the same command on all hosts goes on from the last checkpoint"
        print(f"\nerror: {reason}; {again}", file=sys.stderr, flush=True)
    if first():
        time.sleep(3)  # for the others to read the same
    os._exit(_code)


def _part() -> None:
    """All hosts end together, and are not looked for any more."""
    meet("end")
    _over.set()
    _let_go()


def _hold_back() -> None:
    """From now on what C++ writes to stderr goes to a file, and Python's own where it went: when a
    host is lost C++ writes a page and aborts, of which `_aborted` makes one line."""
    global _held
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    _held = os.memfd_create("stderr")
    os.dup2(_held, 2)
    ctypes.CDLL(None).signal(signal.SIGABRT, _aborted)


def _let_go() -> None:
    """Writes to stderr what has been held back since the last time."""
    global _told
    text = os.pread(_held, os.fstat(_held).st_size - _told, _told)
    _told += len(text)
    sys.stderr.write(text.decode(errors="replace"))


@ctypes.CFUNCTYPE(None, ctypes.c_int)
def _aborted(_: int) -> None:
    """The handler of SIGABRT, of C, since Python's own would come too late. The process ends when
    it returns."""
    text = os.pread(_held, os.fstat(_held).st_size, 0).decode(errors="replace")
    if "distributed service detected fatal errors" in text:
        silent = re.search(r"stopped sending heartbeats\):\s*(\d+)", text)
        _end(f"host {silent[1] if silent else 0} has ended")
    _let_go()
