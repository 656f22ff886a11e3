"""Law: results do not depend on the number of devices."""

import jax
import numpy as np
import pytest

from clutrr_jax.training.replicas import Replicas
from tests.training.small import leaves, make_trainer

# Model, replicas, microbatches -> groups of devices, devices per group, on four devices.
CASES = {
    ("gat", 10, 1): (4, 1),
    ("gat", 3, 2): (2, 2),
    ("bilstm_mean", 2, 4): (1, 4),
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[] if case == ("gat", 3, 2) else pytest.mark.slow) for case in CASES],
)
def test_one_and_four_devices_train_the_same(case, small, monkeypatch) -> None:
    """Also where the replicas do not divide the devices. Sums may have another order: losses agree
    within 1e-5, and parameters within 1e-4, since Adam divides by small numbers."""
    name, count, microbatches = case
    results = []
    for devices in (jax.devices(), jax.devices()[:1]):
        monkeypatch.setattr(jax, "devices", lambda devices=devices: devices)
        replicas = Replicas(count, microbatches=microbatches)
        trainer = make_trainer(name, small, replicas, microbatches=microbatches)
        state, losses = trainer.init(), []
        for epoch in (1, 2):
            state, metrics = trainer.epoch(state, epoch)
            losses.append(metrics["loss"])
        predicted, _ = trainer.predict(state.params, state.buffers, small.test_stories)
        arrays = [leaf[:count] for leaf in leaves(state)]
        results.append((tuple(replicas.mesh.shape.values()), losses, arrays, predicted))
    (mesh, losses, arrays, predicted), (one, one_losses, one_arrays, one_predicted) = results
    assert mesh == CASES[case] and one == (1, 1)
    np.testing.assert_allclose(losses, one_losses, atol=1e-5)
    for a, b in zip(arrays, one_arrays, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)
    np.testing.assert_array_equal(predicted, one_predicted)
