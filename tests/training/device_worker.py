"""Trains small models on forced CPU devices for `test_devices.py` and writes the results to OUT.

python -m tests.training.device_worker DEVICES DATA OUT NAME,REPLICAS,PARTS...
"""

import sys
from pathlib import Path

import jax
import numpy as np

from clutrr_jax.data.prepare import prepare
from clutrr_jax.training.replicas import Replicas
from tests.training.test_steps import leaves, programs_for

if __name__ == "__main__":
    devices, data, out, *cases = sys.argv[1:]
    jax.config.update("jax_num_cpu_devices", int(devices))
    cache = Path.home() / ".cache" / "clutrr_jax_tests"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    small, found = prepare(data), {}
    for case in cases:
        name, count, parts = case.split(",")
        replicas = Replicas(int(count), parts=int(parts))
        programs = programs_for(name, small, replicas, microbatches=int(parts))
        state, losses = programs.init(), []
        for epoch in (1, 2):
            state, metrics = programs.epoch(state, epoch)
            losses.append(replicas.keep(metrics.loss))
        answers, _ = programs.predict(state.params, state.other, small.test_stories)
        found[f"{case} losses"] = np.stack(losses)
        found[f"{case} answers"] = replicas.keep(answers)
        for i, leaf in enumerate(leaves((state.params, state.other, state.optimizer))):
            found[f"{case} state {i}"] = leaf[: int(count)]
        found[f"{case} mesh"] = np.array(list(replicas.mesh.shape.values()))
    np.savez(out, **found)
