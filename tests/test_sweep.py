"""A sweep in one run: its rows, files and models, and what is refused."""

import json

import numpy as np
import pytest

import clutrr_jax
from clutrr_jax.experiment import runs
from clutrr_jax.launch import main
from clutrr_jax.models import MODELS
from clutrr_jax.models.setting import Setting
from clutrr_jax.report.outputs import read_curves, replicas_of_result
from clutrr_jax.run import identity
from clutrr_jax.settings import change, default_settings
from experiments.figure5 import get_config
from tests.test_continuing import MODEL, data

RATES = [1e-4, 0.03]
NAMES = [f"{MODEL} (learning_rate={text})" for text in (".0001", ".03")]


def train(folder, rates=RATES, epochs: int = 2) -> clutrr_jax.Trained:
    sweep = {"train.learning_rate": rates}
    return clutrr_jax.train(MODEL, data(), replicas=2, epochs=epochs, sweep=sweep, folder=folder)


def test_a_sweep_is_one_run(tmp_path) -> None:
    """The dev loss chooses the point whose predictions are those of the model."""
    run = train(tmp_path)
    sweep = run.results["models"][MODEL]["sweep"]
    losses = [np.mean(point["dev_loss"]) for point in sweep["points"]]
    assert [point["name"] for point in sweep["points"]] == NAMES and losses[1] < losses[0]
    assert sweep["chosen"] == NAMES[1]
    assert [*run.predictions] == [MODEL, *NAMES]
    np.testing.assert_array_equal(run.predictions[MODEL][3], run.predictions[NAMES[1]][3])
    assert {row["name"]: row["kind"] for row in run.results["rows"]}[NAMES[0]] == "sweep"
    assert {row["replicas"] for row in run.accuracy if row["model"] in NAMES} == {2}
    for name in (MODEL, *NAMES):
        model, rate = run.model(name), RATES[name != NAMES[0]]
        assert model.settings["train"]["learning_rate"] == rate and model.replicas == 2
        found = model.predict(data())
        np.testing.assert_allclose(found.probabilities, run.predictions[name][3], atol=1e-6)
    assert run.notes() == []
    assert replicas_of_result(tmp_path / MODEL) == slice(2, 4)
    last = json.loads((tmp_path / MODEL / "metrics.jsonl").read_text().splitlines()[-1])
    curve = read_curves(tmp_path / MODEL / "metrics.jsonl", slice(2, 4))
    assert curve[-1]["loss"] == np.mean(last["loss"][2:])
    text = (tmp_path / "results.md").read_text()
    assert f"dev loss chooses {NAMES[1]} of 2 points" in text and "sweep.png" in text
    assert (tmp_path / "sweep.png").stat().st_size > 10_000
    for name in (MODEL, *NAMES):
        assert f",{name},1," in (tmp_path / "results.csv").read_text()
        assert name in (tmp_path / "report.html").read_text()
    with pytest.raises(clutrr_jax.InputError, match=r"learning_rate=\.5\)\": expected"):
        clutrr_jax.load_model(tmp_path / MODEL, "learning_rate=.5")


@pytest.mark.slow
def test_a_folder_belongs_to_one_sweep(tmp_path) -> None:
    train(tmp_path)
    before = (tmp_path / MODEL / "model.json").read_bytes()
    with pytest.raises(clutrr_jax.InputError, match=r"train\.learning_rate was \"\[0.0001, 0.03\]"):
        train(tmp_path, [1e-4, 0.3])
    with pytest.raises(clutrr_jax.InputError, match=r"train\.learning_rate was \"\[0.0001, 0.03\]"):
        clutrr_jax.train(MODEL, data(), replicas=2, epochs=2, folder=tmp_path)
    assert (tmp_path / MODEL / "model.json").read_bytes() == before
    whole, resumed = train(tmp_path / "whole", epochs=3), train(tmp_path, epochs=3)
    for name in NAMES:
        np.testing.assert_array_equal(whole.predictions[name][3], resumed.predictions[name][3])


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("gat.dropot", [0.1], 'no setting "gat.dropot"; expected one of gat.directions'),
        (
            "gat.node",
            [50, 100],
            'sweep "gat.node": may change shapes.* expected a loop over runs: ',
        ),
        ("seed", "0,1", 'sweep "seed": may change shapes'),
        ("train.batch", "20,50", r"--config.train.batch=\$x; done, or in Python train"),
        ("gat.dropout", [0.1, 1.0], 'sweep "gat.dropout": 1.0: expected at least 0 and below 1'),
        ("gat.dropout", "0.1,x", 'sweep "gat.dropout": .0.1,x., expected values of type float'),
        ("gat.dropout", [True, False], 'sweep "gat.dropout": .*, expected values of type float'),
        ("gat.dropout", b"12", 'sweep "gat.dropout": .*, expected values of type float'),
        ("train.learning_rate", [10**400], "expected values of type float"),
        ("gat.dropout", [], 'sweep "gat.dropout": .., expected values of type float'),
        ("gat.dropout", 0.1, 'sweep "gat.dropout": 0.1, expected values of type float'),
        ("rmc.dropout", [0.1], 'sweep "rmc.dropout": no such model, expected one of gat'),
    ],
)
def test_what_a_sweep_cannot_have(name: str, values: object, expected: str) -> None:
    config = default_settings("single", "gat")
    with pytest.raises(clutrr_jax.InputError, match=expected) as error:
        change(config, f"sweep.{name}", values)
        runs(config)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("swept", "given"), [("", ""), ("", "gat."), ("gat.", "gat.")])
def test_a_setting_has_values_or_a_value(swept: str, given: str) -> None:
    config = default_settings("single", "gat")
    change(config, f"sweep.{swept}train.learning_rate", "1e-3,1e-2")
    change(config, f"{given}train.learning_rate", 0.5)
    with pytest.raises(clutrr_jax.InputError, match=r"the setting is also 0\.5, expected only one"):
        runs(config)


@pytest.mark.parametrize("name", ["gat.dropout", "reader_prover.prover.rule_penalty"])
def test_a_setting_of_a_model_has_values_or_a_value(name: str) -> None:
    config = default_settings("single", name.partition(".")[0])
    change(config, f"sweep.{name}", "0.1,0.2")
    assert len(runs(config)) == 1
    change(config, name, 0.3)
    with pytest.raises(clutrr_jax.InputError, match=r"the setting is also 0\.3, expected only one"):
        runs(config)


@pytest.mark.parametrize("name", ["gat.sweep.dropout", "gat.sweep.train.learning_rate"])
def test_a_sweep_in_the_wrong_place_is_no_setting(name: str) -> None:
    with pytest.raises(clutrr_jax.InputError, match=f'^no setting "{name}"; expected one of'):
        change(default_settings("single", "gat"), name, "0.1,0.2")


def test_values_have_the_type_of_their_setting(monkeypatch) -> None:
    settings = dict(MODELS["gat"].settings)
    settings |= {"flag": Setting(False, sweeps=True), "count": Setting(1, sweeps=True)}
    monkeypatch.setitem(MODELS, "gat", MODELS["gat"]._replace(settings=settings))
    config = default_settings("single", "gat")
    for values in ("True,false", [True, False]):
        change(config, "sweep.gat.flag", values)
        assert config.sweep.gat.flag == (True, False)
    for name, values in {"flag": [0, 1], "count": [0.5, 1.7]}.items():
        with pytest.raises(clutrr_jax.InputError, match="expected values of type"):
            change(config, f"sweep.gat.{name}", values)


@pytest.mark.parametrize("arguments", [{"sweep": 5}, {"sweep": ["gat.dropout"]}, {"settings": 5}])
def test_settings_are_given_by_name(arguments: dict) -> None:
    with pytest.raises(clutrr_jax.InputError, match="expected a dict of settings by name"):
        clutrr_jax.train(MODEL, data(), **arguments)


def test_a_sweep_that_is_not_finished_leaves_the_report_of_others(tmp_path) -> None:
    sweep, only = {"reader_prover.gold": [0.0, 0.1]}, {"only": MODEL}
    run = clutrr_jax.train(
        [MODEL, "reader_prover"], data(), replicas=1, epochs=1, settings=only, sweep=sweep,
        folder=tmp_path,
    )  # fmt: skip
    assert [*run.results["models"]] == [MODEL]


def test_a_command_refuses_in_one_line(tmp_path, capsys) -> None:
    arguments = ["--config.sweep.gat.heads=2,5", f"--workdir={tmp_path}/run"]
    with pytest.raises(SystemExit) as end:
        main(arguments)
    error = capsys.readouterr().err
    assert end.value.code == 2 and error.count("\n") == 1
    assert (
        '--config.gat.heads=$x; done, or in Python train(..., settings={"gat.heads": x})' in error
    )
    assert not (tmp_path / "run").exists()


def test_a_table_of_several_data_sets_has_no_sweep() -> None:
    config = get_config()
    change(config, "sweep.train.learning_rate", "1e-3,1e-2")
    with pytest.raises(clutrr_jax.InputError, match="expected an experiment on one data set"):
        runs(config)


def test_a_grid_belongs_to_the_run() -> None:
    """The values of a model rank before those of all models, and of each the last changes first."""
    config = default_settings("single", "gat,prover")
    for name, values in {
        "train.learning_rate": "1e-3,1e-2", "prover.train.learning_rate": (0.5,),
        "gat.dropout": [0.1, 0.3, 0.1],
    }.items():  # fmt: skip
        change(config, f"sweep.{name}", values)
    gat, prover = (identity(run) for run in runs(config))
    assert gat["train.learning_rate"] == [1e-3, 1e-3, 1e-2, 1e-2]
    assert gat["gat.dropout"] == [0.1, 0.3, 0.1, 0.3]
    assert prover["train.learning_rate"] == [0.5] and json.dumps(prover)
