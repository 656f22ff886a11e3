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

_END = b"\0"  # no signal has this number
_requested, _may_exit = threading.Event(), threading.Event()


@contextmanager
def handled() -> Iterator[None]:
    """A context in which SIGTERM sets a flag instead of ending the process, see `requested` and
    `at_once`; afterwards it does again what it did before. Only the main thread gets signals: in
    another one, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _forget_in_children()
    _requested.clear()
    read, write = os.pipe()
    os.set_blocking(write, False)
    handler = signal.signal(signal.SIGTERM, lambda *_: _requested.set())
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(read, before, ended), daemon=True)
    watch.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGTERM, handler or signal.SIG_DFL)
        ended.set()
        os.write(write, _END)  # a child process that was forked may have the pipe open
        watch.join()
        os.close(write)
    if requested():
        exit_resumable()


def _watch(read: int, before: int, ended: threading.Event) -> None:
    """Exits after SIGTERM. Python would call a signal handler only when the main thread returns
    from JAX, which compiles a large model for a minute. Other signals go to the file `before`."""
    while (received := os.read(read, 1)) != _END:
        if received != bytes([signal.SIGTERM]):
            if before >= 0:
                os.write(before, received)
            continue
        _requested.set()
        while not (jax.distributed.is_initialized() or ended.is_set()):
            if _may_exit.wait(0.1):
                _say()
                os._exit(CODE)
    os.close(read)


@cache
def _forget_in_children() -> None:
    """A child process has the same pipe until it starts another program."""
    os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))


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
