"""Checkpoints of a training state, written by Orbax. The last two are kept.

Checkpoint E is the state after epoch E, and E.N that after N more batches, within the next epoch.

Orbax itself restores other numbers from an array file with a flipped byte, without an error: each
checkpoint has the digests of its files. On several hosts the primary reads and writes, and
broadcasts what it has read. Orbax is imported on first use, which keeps the start short.
"""

import hashlib
import logging
import shutil
import time
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np

from clutrr_jax.training import distributed, preemption
from generator.errors import InputError, first_line
from generator.files import write_text

DIGESTS = "files.sha256"  # file of a checkpoint with the digests of its other files


class Checkpoints:
    """Checkpoints of one run in a folder that `save` creates if necessary.

    A checkpoint is complete once its file `DIGESTS` is written. A checkpoint with a missing or
    wrong digest is never used: the one before takes its place.
    """

    def __init__(self, folder: Path):
        # Orbax logs every file that it writes.
        logging.getLogger("absl").setLevel(logging.CRITICAL)
        self.folder = folder
        self._intact: list[str] = []  # the last two checkpoints that were read or written

    @cached_property
    def _checkpointer(self) -> Any:
        from orbax.checkpoint import Checkpointer, StandardCheckpointHandler, options

        primary = options.MultiprocessingOptions(primary_host=0, active_processes={0})
        handler = StandardCheckpointHandler(multiprocessing_options=primary)
        return Checkpointer(handler, multiprocessing_options=primary)

    def save(self, epoch: int, state: Any, done: int = 0) -> None:
        """Writes the state after an epoch, or after `done` batches of the next one. Collective. It
        may be killed at any moment.

        Call `restore` before: all checkpoints but the restored one, and the last one that was
        written, are removed. Raises InputError if the checkpoint cannot be written; the one before
        is intact.
        """
        arrays = _named_arrays(state)
        if not distributed.is_primary():
            return
        from orbax.checkpoint import args

        name = f"{epoch}.{done}" if done else str(epoch)
        folder = self.folder.absolute() / name
        try:
            self._remove({*self._intact} - {name})
            self._checkpointer.save(folder / "default", args=args.StandardSave(arrays))
            write_text(folder / DIGESTS, _digests(folder))
            self._intact = [*self._intact[-1:], name]
            self._remove({*self._intact})
        except Exception as error:  # Orbax raises many classes
            raise InputError(
                f"{self.folder / name}: cannot be written ({first_line(error)}); run the same "
                "command again to resume from the checkpoint before"
            ) from None

    def _remove(self, kept: set[str]) -> None:
        """Removes the other checkpoints, also incomplete ones."""
        for path in self.folder.glob("[0-9]*"):
            if path.name not in kept:
                shutil.rmtree(path)

    def restore(self, template: Any, within: Any = None) -> tuple[int, int, Any] | None:
        """Returns epoch, batches of the next epoch and state of the newest intact checkpoint, or
        None, given a state with the expected structure, shapes and shardings: after an epoch, and
        within one. Collective.

        Raises InputError if all checkpoints are damaged, or belong to another configuration.
        """
        at, saved = (self.newest() if distributed.is_primary() else None) or ((0, 0), {})
        epoch, done = map(int, distributed.broadcast(np.array(at)))
        if not epoch and not done:
            return None
        template = within if done else template
        expected = _named_arrays(template)
        if not distributed.is_primary():
            saved = expected
        elif jax.tree.map(np.shape, saved) != jax.tree.map(np.shape, expected):
            raise InputError(
                f"{self.folder / self._intact[-1]}: a checkpoint of another configuration, "
                "expected the same model, sizes, number of replicas and version of clutrr_jax"
            )
        saved = distributed.broadcast(saved)
        return (
            epoch,
            done,
            jax.tree_util.tree_map_with_path(
                lambda path, leaf: distributed.put(
                    saved[jax.tree_util.keystr(path)], leaf.sharding
                ),
                template,
            ),
        )

    def newest(self) -> tuple[tuple[int, int], dict[str, np.ndarray]] | None:
        """Returns epoch and batches of the next epoch of the newest intact checkpoint, and its
        arrays by the path of `jax.tree_util.keystr`, or None. Raises InputError if all checkpoints
        are damaged."""
        # Without digests the run was killed before the end of `save`.
        complete = [path.parent.name for path in self.folder.glob(f"[0-9]*/{DIGESTS}")]
        for name in sorted(complete, key=_position, reverse=True):
            folder = self.folder.absolute() / name
            if (folder / DIGESTS).read_text(errors="replace") == _digests(folder):
                from orbax.checkpoint import args

                self._intact = [name]
                saved = self._checkpointer.restore(folder / "default", args=args.StandardRestore())
                return _position(name), saved
        if complete:
            raise InputError(
                f"{self.folder}: no checkpoint can be read (a file differs from its digest); "
                "remove the folder to train from the start"
            )
        return None


def _position(name: str) -> tuple[int, int]:
    """Epoch, and batches of the next epoch, of a checkpoint."""
    epoch, _, done = name.partition(".")
    return int(epoch), int(done or 0)


class Saver:
    """Saves the state every few minutes and at the end. After SIGTERM it saves it and exits.

    Called after each epoch, and between the segments of one.
    """

    def __init__(self, checkpoints: Checkpoints, minutes: float):
        self.checkpoints, self.minutes, self.saved_at = checkpoints, minutes, time.monotonic()

    def __call__(self, epoch: int, state: Any, done: int = 0, is_last: bool = False) -> None:
        """Collective. See `Checkpoints.save`."""
        is_due = time.monotonic() - self.saved_at > 60 * self.minutes
        stop = distributed.any_host(preemption.requested())
        if is_last or stop or distributed.any_host(is_due and distributed.is_primary()):
            self.checkpoints.save(epoch, state, done)
            self.saved_at = time.monotonic()
        if stop:
            preemption.exit_resumable()


def _named_arrays(state: Any) -> dict[str, np.ndarray]:
    """Returns the whole arrays of a state by path."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {jax.tree_util.keystr(path): distributed.gather(leaf) for path, leaf in leaves}


def _digests(folder: Path) -> str:
    """Returns the digests of all files except `DIGESTS`, in the format of `sha256sum`."""
    files = sorted(f for f in folder.rglob("*") if f.is_file() and not f.name.endswith(DIGESTS))
    return "".join(
        f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.relative_to(folder)}\n" for f in files
    )
