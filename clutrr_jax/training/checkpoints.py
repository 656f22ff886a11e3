"""Checkpoints of a training state, with Orbax. The last two are kept.

Of several hosts the first one writes and reads, and gives the others what it has read. Orbax is
imported where there is something to read or write, so that training starts without it.
"""

import hashlib
import logging
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np

from clutrr_jax.ops import threefry
from clutrr_jax.training import distributed
from generator.errors import InputError, at

DIGEST = "digest"  # among the arrays of a checkpoint
NOTE = "files.sha256"  # among its files


def _named(state: Any) -> dict[str, np.ndarray]:
    """Every array of the state under the name of its place in it; random keys as their numbers."""
    return {
        jax.tree_util.keystr(path): distributed.gather(threefry.numbers(x))
        for path, x in jax.tree_util.tree_leaves_with_path(state)
    }


def _digest(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Tells whether a byte was changed: [32]. The libraries below notice a missing file only."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return np.frombuffer(digest.digest(), np.uint8)


def _note(folder: Path) -> str:
    """Tells whether a byte of a file was changed. Orbax is not to read what is damaged: where an
    array fails, the reads of the others go on behind its back, and complain on stderr."""
    files = sorted(f for f in folder.rglob("*") if f.is_file() and not f.name.startswith(NOTE))
    return "".join(
        f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.relative_to(folder)}\n" for f in files
    )


class Checkpoints:
    """The checkpoints of one run in one folder, by epoch."""

    def __init__(self, folder: Path):
        # Orbax tells of every file it writes, and of damage, which is dealt with below.
        logging.getLogger("absl").setLevel(logging.CRITICAL)
        self.folder = folder
        if distributed.first():
            folder.mkdir(parents=True, exist_ok=True)

    @cached_property
    def _manager(self) -> Any:
        from orbax.checkpoint import CheckpointManager, CheckpointManagerOptions, options

        alone = options.MultiprocessingOptions(primary_host=0, active_processes={0})
        return CheckpointManager(
            self.folder.absolute(),
            options=CheckpointManagerOptions(
                max_to_keep=2,
                enable_async_checkpointing=False,
                cleanup_tmp_directories=True,
                create=False,
                multiprocessing_options=alone,
            ),
        )

    def save(self, epoch: int, state: Any) -> None:
        """Writes the state after `epoch`; nothing is lost when killed meanwhile.

        Raises:
          InputError: it cannot be written; the one before is still there.
        """
        arrays = _named(state)
        if not distributed.first():
            return
        from orbax.checkpoint import args

        try:
            for later in self._manager.all_steps():
                if later >= epoch:  # a damaged one, or it would have been restored
                    self._manager.delete(later)
            saved = args.StandardSave(arrays | {DIGEST: _digest(arrays)})
            self._manager.save(epoch, args=saved)
            note = self.folder / str(epoch) / NOTE
            part = note.with_suffix(note.suffix + ".part")
            part.write_text(_note(note.parent))
            part.replace(note)
        except Exception as error:  # whatever a full disk provokes in the libraries below
            raise InputError(
                f"{at(self.folder / str(epoch))}: cannot be written ({_first_line(error)}); the "
                "same command goes on from the checkpoint before"
            ) from None

    def restore(self, template: Any) -> tuple[int, Any] | None:
        """Epoch and state of the newest checkpoint that can be read, or None where there is none.

        Args:
          template: a state with the wanted structure, shapes and devices.
        Raises:
          InputError: checkpoints are there but none can be used.
        """
        epoch, saved = (self.newest() if distributed.first() else None) or (0, {})
        epoch = int(distributed.from_first(np.array(epoch)))
        if not epoch:
            return None
        arrays = _named(template)
        if distributed.first() and {n: x.shape for n, x in saved.items()} != {
            n: x.shape for n, x in arrays.items()
        }:
            raise InputError(
                f"{at(self.folder / str(epoch))}: a checkpoint of another configuration, "
                "expected the same model, sizes and number of replicas"
            )
        return epoch, _like(
            template, distributed.from_first(saved if distributed.first() else arrays)
        )

    def newest(self) -> tuple[int, dict[str, np.ndarray]] | None:
        """Epoch and arrays, by name, of the newest checkpoint that can be read, or None where
        there is none.

        Raises:
          InputError: checkpoints are there but none can be read.
        """
        if not any(self.folder.iterdir()):
            return None
        from orbax.checkpoint import args

        problem = ""
        for epoch in sorted(self._manager.all_steps(), reverse=True):
            note = self.folder / str(epoch) / NOTE  # not there if the run was killed in between
            try:
                if note.exists() and note.read_text(errors="replace") != _note(note.parent):
                    problem = problem or "it is not what was written"
                    continue
                saved = self._manager.restore(epoch, args=args.StandardRestore())
            except Exception as error:  # whatever a damaged file provokes in the libraries below
                problem = problem or _first_line(error)
                continue
            digest = saved.pop(DIGEST, None)
            if digest is not None and not np.array_equal(digest, _digest(saved)):
                problem = problem or "it is not what was written"
                continue
            return epoch, saved
        if problem:
            raise InputError(
                f"{at(self.folder)}: no checkpoint can be read ({problem}); "
                "remove the folder to train anew"
            )
        return None


def _first_line(error: Exception) -> str:
    return (str(error).strip() or repr(error)).splitlines()[0][:200]


def _like(template: Any, saved: dict[str, np.ndarray]) -> Any:
    """The saved arrays in the structure and on the devices of the template."""

    def restore(path: Any, leaf: jax.Array) -> jax.Array:
        array = distributed.place(saved[jax.tree_util.keystr(path)], leaf.sharding)
        return threefry.like(leaf, array)

    return jax.tree_util.tree_map_with_path(restore, template)
