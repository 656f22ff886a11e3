"""Checkpoints of a training state, written by Orbax. The last two are kept.

Orbax itself restores other numbers from an array file with a flipped byte, without an error: each
checkpoint has the digests of its files. On several hosts the primary reads and writes, and
broadcasts what it has read. Orbax is imported on first use, which keeps the start short.
"""

import hashlib
import logging
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
    """Checkpoints of one run, by epoch, in a folder that `save` creates if necessary.

    A checkpoint is complete once its file `DIGESTS` is written. A checkpoint with a missing or
    wrong digest is never used: the one before takes its place.
    """

    def __init__(self, folder: Path):
        # Orbax logs every file that it writes.
        logging.getLogger("absl").setLevel(logging.CRITICAL)
        self.folder = folder
        self._intact = 0  # epoch of the last checkpoint that was read or written

    @cached_property
    def _manager(self) -> Any:
        from orbax.checkpoint import CheckpointManager, CheckpointManagerOptions, options

        return CheckpointManager(
            self.folder.absolute(),
            options=CheckpointManagerOptions(
                max_to_keep=2,
                enable_async_checkpointing=False,
                cleanup_tmp_directories=True,
                create=False,
                multiprocessing_options=options.MultiprocessingOptions(
                    primary_host=0, active_processes={0}
                ),
            ),
        )

    def save(self, epoch: int, state: Any) -> None:
        """Writes the state after an epoch. Collective. It may be killed at any moment.

        Call `restore` before: checkpoints later than the restored one are removed. Raises
        InputError if the checkpoint cannot be written; the one before is intact.
        """
        arrays = _named_arrays(state)
        if not distributed.is_primary():
            return
        from orbax.checkpoint import args

        folder = self.folder / str(epoch)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for later in self._manager.all_steps():
                if later > self._intact:  # damaged, or it would have been restored
                    self._manager.delete(later)
            self._manager.save(epoch, args=args.StandardSave(arrays))
            write_text(folder / DIGESTS, _digests(folder))
            self._intact = epoch
        except Exception as error:  # Orbax raises many classes
            raise InputError(
                f"{folder}: cannot be written ({first_line(error)}); run the same command "
                "again to resume from the checkpoint before"
            ) from None

    def restore(self, template: Any) -> tuple[int, Any] | None:
        """Returns the epoch and state of the newest intact checkpoint, or None, given a state with
        the expected structure, shapes and shardings. Collective.

        Raises InputError if all checkpoints are damaged, or belong to another configuration.
        """
        epoch, saved = (self.newest() if distributed.is_primary() else None) or (0, {})
        epoch = int(distributed.broadcast(np.array(epoch)))
        if not epoch:
            return None
        expected = _named_arrays(template)
        if not distributed.is_primary():
            saved = expected
        elif jax.tree.map(np.shape, saved) != jax.tree.map(np.shape, expected):
            raise InputError(
                f"{self.folder / str(epoch)}: a checkpoint of another configuration, "
                "expected the same model, sizes, number of replicas and version of clutrr_jax"
            )
        saved = distributed.broadcast(saved)
        self._intact = epoch
        return epoch, jax.tree_util.tree_map_with_path(
            lambda path, leaf: distributed.put(saved[jax.tree_util.keystr(path)], leaf.sharding),
            template,
        )

    def newest(self) -> tuple[int, dict[str, np.ndarray]] | None:
        """Returns the epoch and the arrays of the newest intact checkpoint, by the path of
        `jax.tree_util.keystr`, or None. Raises InputError if all checkpoints are damaged."""
        # Without digests the run was killed before the end of `save`.
        complete = [int(path.parent.name) for path in self.folder.glob(f"[0-9]*/{DIGESTS}")]
        for epoch in sorted(complete, reverse=True):
            folder = self.folder / str(epoch)
            if (folder / DIGESTS).read_text(errors="replace") == _digests(folder):
                from orbax.checkpoint import args

                return epoch, self._manager.restore(epoch, args=args.StandardRestore())
        if complete:
            raise InputError(
                f"{self.folder}: no checkpoint can be read (a file differs from its digest); "
                "remove the folder to train from the start"
            )
        return None


class Saver:
    """Saves the state every few minutes and at the end. After SIGTERM it saves it and exits."""

    def __init__(self, checkpoints: Checkpoints, minutes: float):
        self.checkpoints, self.minutes, self.saved_at = checkpoints, minutes, time.monotonic()

    def __call__(self, epoch: int, state: Any, is_last: bool = False) -> None:
        """Collective."""
        is_due = time.monotonic() - self.saved_at > 60 * self.minutes
        stop = distributed.any_host(preemption.requested())
        if is_last or stop or distributed.any_host(is_due and distributed.is_primary()):
            self.checkpoints.save(epoch, state)
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
