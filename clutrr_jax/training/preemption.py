"""Preemption: after SIGTERM from a scheduler, a run saves its state and exits."""

import os
import signal
import sys
import threading
from typing import NoReturn

CODE = os.EX_TEMPFAIL  # 75: the scheduler may run the same command again

_requested = threading.Event()


def install_handler() -> None:
    """Makes SIGTERM set a flag instead of ending the process."""
    signal.signal(signal.SIGTERM, lambda *_: _requested.set())


def requested() -> bool:
    """Returns whether SIGTERM was received."""
    return _requested.is_set()


def exit_resumable() -> NoReturn:
    """Exits with code 75. The state must have been saved."""
    print("\nstopped by SIGTERM; run the same command to resume", file=sys.stderr, flush=True)
    raise SystemExit(CODE)
