"""A scheduler that takes the machine back says so by SIGTERM: the run saves its state and ends."""

import os
import signal
import sys
import threading
from typing import NoReturn

CODE = os.EX_TEMPFAIL  # 75: a scheduler may queue the same command again

_asked = threading.Event()


def install_handler() -> None:
    """From now on SIGTERM does not end the process; `asked` tells of it."""
    signal.signal(signal.SIGTERM, lambda *_: _asked.set())


def requested() -> bool:
    """Whether the process is to end soon."""
    return _asked.is_set()


def exit_resumable() -> NoReturn:
    """Ends the process, after all that matters has been saved."""
    print("\nstopped by SIGTERM; the same command goes on from here", file=sys.stderr, flush=True)
    raise SystemExit(CODE)
