"""Preemption: after SIGTERM from a scheduler, a run saves its state and exits."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NoReturn

import jax

CODE = os.EX_TEMPFAIL  # 75: the scheduler may run the same command again

_requested, _may_exit = threading.Event(), threading.Event()


def install_handler() -> None:
    """Makes SIGTERM set a flag instead of ending the process, see `requested` and `at_once`."""
    signal.signal(signal.SIGTERM, lambda *_: _requested.set())
    _start_watching()


@cache
def _start_watching() -> None:
    """Starts a thread that exits after SIGTERM. Python would call a signal handler only when the
    main thread returns from JAX, which compiles a large model for a minute."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    # A child process has the same pipe until it starts another program.
    os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))

    def watch() -> None:
        while (received := os.read(read, 1)) != bytes([signal.SIGTERM]):
            if before >= 0:
                os.write(before, received)
        _requested.set()
        if not jax.distributed.is_initialized():
            _may_exit.wait()
            _say()
            os._exit(CODE)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def at_once() -> Iterator[None]:
    """A context in which there is nothing to save: SIGTERM ends the process at once. If there are
    several hosts, all exit together, see `requested`."""
    _may_exit.set()
    try:
        yield
    finally:
        _may_exit.clear()


def requested() -> bool:
    """Returns whether SIGTERM was received."""
    return _requested.is_set()


def exit_resumable() -> NoReturn:
    """Exits with code 75. The state must have been saved."""
    _say()
    raise SystemExit(CODE)


def _say() -> None:
    print("\nstopped by SIGTERM; run the same command to resume", file=sys.stderr, flush=True)
