"""SIGTERM: what it does within a training, and that it does the same as before afterwards."""

import os
import signal
import subprocess
import threading

import pytest

import clutrr_jax
from clutrr_jax.training import preemption
from tests.test_continuing import data, train


def test_a_signal_within_the_context_is_kept_for_its_end(capsys) -> None:
    with pytest.raises(SystemExit) as end, preemption.handled():
        os.kill(os.getpid(), signal.SIGTERM)
        assert preemption.requested()
    assert end.value.code == 75 and "stopped by SIGTERM" in capsys.readouterr().err
    with preemption.handled():
        assert not preemption.requested()


def test_a_child_process_that_goes_on_is_not_waited_for() -> None:
    with preemption.handled():
        pipe = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(pipe)
        child = subprocess.Popen(["sleep", "60"], pass_fds=[pipe])  # as a forked process has it
    assert child.poll() is None
    child.kill()
    child.wait()


def test_signals_of_the_user_are_theirs_after_a_training(tmp_path) -> None:
    got: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: got.append(number))
    read, write = os.pipe()
    os.set_blocking(write, False)
    woken = signal.set_wakeup_fd(write)
    try:
        train(data(), epochs=1, folder=tmp_path)
        os.kill(os.getpid(), signal.SIGTERM)
        assert got == [signal.SIGTERM] and os.read(read, 1) == bytes([signal.SIGTERM])
        assert not preemption.requested()
    finally:
        signal.set_wakeup_fd(woken)
        signal.signal(signal.SIGTERM, before)


def test_a_training_in_another_thread_leaves_signals_alone(tmp_path) -> None:
    before, runs = signal.getsignal(signal.SIGTERM), []

    def run() -> None:
        trained: clutrr_jax.Trained = train(data(), epochs=1, folder=tmp_path)
        runs.append((trained, signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert len(runs) == 1 and runs[0][1] == before
