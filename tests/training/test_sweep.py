"""Law: each point of a sweep equals the run with its values alone, bit for bit on a CPU."""

import math
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from clutrr_jax.models import MODELS
from clutrr_jax.models.setting import Setting
from clutrr_jax.models.swept import Swept, at_point, label, of_point, points
from clutrr_jax.settings import TRAIN_SETTINGS
from clutrr_jax.training.checkpoints import Checkpoints
from clutrr_jax.training.loop import Trainer
from clutrr_jax.training.replicas import Replicas
from clutrr_jax.training.steps import create_optimizer
from tests.training.small import leaves, make_trainer

SEEDS, FIRST_SEED = 2, 5
# Model -> values of its swept settings at each point.
CASES: list[tuple[str, dict[str, list[float]]]] = [
    ("gat", {"dropout": [0.3, 0.55], "train.learning_rate": [3e-4, 3e-3]}),
    ("gat", {"train.grad_clip_norm": [0.01, 0.3], "train.ema_decay": [0.0, 0.7]}),
    ("prover", {"scale": [3.0, 7.3], "floor": [1e-4, 0.03], "rule_penalty": [0.0, 0.02]}),
    # Two points of each kind, with and without a penalty: each kind has a program of its own.
    ("prover", {"scale": [3.0, 7.3, 3.0, 7.3], "rule_penalty": [0.0, 0.0, 0.02, 0.01]}),
    ("ctp_attentive", {"logit_penalty": [0.0, 1e-3, 0.01], "rule_dropout": [0.1, 0.3, 0.0]}),
    ("bilstm_mean", {"word_dropout": [0.05, 0.2], "train.shuffle_sentences": [0.2, 1.0]}),
    ("reader_prover", {"gold": [0.0, 0.1], "relation_word_prior": [8.0, 3.0]}),
    ("reader_prover", {"relation_word_penalty": [0.02, 0.3], "syntax_prior": [3.0, 1.0]}),
]


def trainer_of(name: str, data: Any, values: dict[str, Any], replicas: Replicas) -> Trainer:
    train = {n.removeprefix("train."): v for n, v in values.items() if n.startswith("train.")}
    own = {name: value for name, value in values.items() if not name.startswith("train.")}
    return make_trainer(name, data, replicas, own, **train)


def results(trainer: Trainer, data: Any, folder: Any = None) -> list[np.ndarray]:
    """State, metrics and predictions after two epochs. With a folder, the state is saved after the
    first one, and another trainer goes on."""
    state, found = trainer.init(), []
    for epoch in (1, 2):
        if folder and epoch == 2:
            Checkpoints(folder).save(1, state)
            _, _, state = Checkpoints(folder).restore(trainer.init())
        state, metrics = trainer.epoch(state, epoch)
        found += metrics.values()
    found += trainer.predict(state.tested_params, state.buffers, data.test_stories)
    return [*(leaf[: trainer.replicas.count] for leaf in leaves(state)), *found]


@pytest.fixture
def usual_programs(monkeypatch) -> None:
    """Compiles as users do. Programs of the tests, which are not optimized, may round a product and
    a sum once or twice; several devices may add in another order, see `test_devices`."""
    devices = jax.devices()[:1]
    monkeypatch.setattr(jax, "devices", lambda: devices)
    options = {
        "xla_backend_optimization_level": 3,
        "xla_llvm_disable_expensive_passes": False,
        "xla_cpu_use_fusion_emitters": True,
    }
    monkeypatch.setattr(jax, "jit", partial(jax.jit, compiler_options=options))


def assert_law(name: str, values: dict[str, list[float]], data: Any, folder: Any = None) -> None:
    swept = {setting: Swept(of_points) for setting, of_points in values.items()}
    sweep = points(swept)
    many = trainer_of(name, data, swept, Replicas(SEEDS, FIRST_SEED, sweep=sweep))
    found = results(many, data, folder)
    for index, point in enumerate(sweep):
        alone = results(trainer_of(name, data, point, Replicas(SEEDS, FIRST_SEED)), data)
        for array, expected in zip(found, alone, strict=True):
            np.testing.assert_array_equal(np.split(array, len(sweep))[index], expected)


@pytest.mark.parametrize(
    ("name", "values"), [pytest.param(*case, marks=pytest.mark.slow) for case in CASES]
)
def test_each_point_equals_the_run_with_its_values(
    name: str, values: dict, few, usual_programs
) -> None:
    assert_law(name, values, few)


@pytest.mark.slow
def test_a_sweep_resumes(few, tmp_path, usual_programs) -> None:
    assert_law("gat", {"train.learning_rate": [3e-4, 1e-3, 0.1]}, few, tmp_path / "c")


def test_rates_of_a_pretrained_encoder(usual_programs) -> None:
    """XLA multiplies the constants of a run first: the rate, and that of a layer relative to it."""
    key, shape = jax.random.key(0), (5, 20, 30)  # steps of gradients
    names = ("learning_rate", "encoder_learning_rate", "encoder_layer_decay")
    values = dict(zip(names, ([1e-3, 7e-4], [5e-5, 3e-5], [0.9, 0.77]), strict=True))
    of_layer = [{"kernel": jax.random.normal(key, shape)} for key in jax.random.split(key)]
    tree = {"encoder": {"layers": dict(enumerate(of_layer))}, "out": of_layer[0]}

    def train(settings: Any, gradients: Any) -> Any:
        config = SimpleNamespace(**settings, grad_clip_norm=1.0)
        optimizer = create_optimizer(config, config, SimpleNamespace(num_hidden_layers=2))
        params = jax.tree.map(lambda x: x[0], gradients)

        def step(state: Any, gradient: Any) -> Any:
            params, state = state
            updates, state = optimizer.update(gradient, state, params)
            return (optax.apply_updates(params, updates), state), None

        return jax.lax.scan(step, (params, optimizer.init(params)), gradients)[0][0]

    swept = {name: Swept(of_points) for name, of_points in values.items()}
    many = jax.jit(partial(at_point, partial(train, swept), points(swept)))
    for index, point in enumerate(points(swept)):
        alone = jax.jit(partial(train, point))(tree)
        for found, expected in zip(leaves(many(index, tree)), leaves(alone), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_marked_settings_are_numbers_that_change_no_shape() -> None:
    """Every number with a fraction is one, with these exceptions."""
    settings = {name: spec.settings for name, spec in MODELS.items()} | {"train": TRAIN_SETTINGS}
    others = set()
    for group in settings.values():
        stack = list(group.items())
        while stack:
            name, setting = stack.pop()
            if not isinstance(setting, Setting):
                stack += setting.items()
            elif setting.sweeps:
                assert isinstance(setting.default, float)
            elif isinstance(setting.default, float):
                others.add(name)
    assert others == {"dev_fraction", "checkpoint_minutes"}


def test_arithmetic_is_that_of_python() -> None:
    """In double precision, and rounded once: .1 + .2 is not .3."""
    a, b = Swept([0.1, 3.0]), Swept([0.2, 7.0])
    for found, expected in [
        (a + b, [0.1 + 0.2, 10.0]), (1 - a, [0.9, -2.0]), (a / 3, [0.1 / 3, 1.0]),
        (2 * a, [0.2, 6.0]), (a**2, [0.1**2, 9.0]), (2**a, [2**0.1, 8.0]), (1 / b, [5.0, 1 / 7]),
        (-a, [-0.1, -3.0]), (abs(-a), [0.1, 3.0]), (b // 2, [0.0, 3.0]), (b % 2, [0.2, 1.0]),
    ]:  # fmt: skip
        assert found == Swept(expected)
    assert not hasattr(a, "__float__") and (a == 0.1) is False


def test_a_program_has_the_number_of_its_point() -> None:
    values = Swept([0.0, 0.1, 0.3, 0.0])
    sweep = points({"penalty": values})
    traced = []

    def function(x: jax.Array) -> jax.Array:
        traced.append(bool(values))
        return x + values if values else x - 1

    found = jax.jit(lambda i, x: at_point(function, sweep, i, x))
    of_all = jax.jit(lambda x: jax.vmap(lambda i: at_point(function, sweep, i, x))(jnp.arange(4)))
    expected = np.float32([0, 1.1, 1.3, 0])
    np.testing.assert_array_equal([found(i, jnp.float32(1)) for i in range(4)], expected)
    np.testing.assert_array_equal(of_all(jnp.float32(1)), expected)
    assert set(traced) == {False, True}


def test_a_comparison_that_differs_between_points_is_refused() -> None:
    """Points that differ in which numbers are 0 have programs of their own, other ones have not."""
    values = Swept([0.0, 0.5, 2.0])
    sweep = points({"penalty": values})
    is_zero = jax.vmap(lambda i: at_point(lambda: jnp.asarray(values == 0), sweep, i))
    assert is_zero(jnp.arange(3)).tolist() == [True, False, False]
    with pytest.raises(
        TypeError, match=r"swept setting \(0.0,0.5,2.0\) cannot be compared with 2.0"
    ):
        jax.vmap(lambda i: at_point(lambda: jnp.asarray(values == 2.0), sweep, i))(jnp.arange(3))


def test_names_and_settings_of_points() -> None:
    settings = {"dropout": Swept([0.0, 0.5]), "node": 3, "empty": {},
                "prover": {"floor": Swept([1e-4, 1.0])},
                "train": {"learning_rate": Swept([1e-5, 0.001]), "epochs": None}}  # fmt: skip
    assert [label(point) for point in points(settings)] == [
        "dropout=.0, prover.floor=.0001, learning_rate=1e-05",
        "dropout=.5, prover.floor=1.0, learning_rate=.001",
    ]
    assert of_point(settings, 1) == {
        "dropout": 0.5, "node": 3, "empty": {}, "prover": {"floor": 1.0},
        "train": {"learning_rate": 0.001, "epochs": None},
    }  # fmt: skip
    plain = {"train": {"learning_rate": math.pi}}
    assert points(plain) == [] and of_point(plain, 0) == plain
