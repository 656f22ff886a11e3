"""The public functions of `clutrr_jax`, and the examples of docs/api.md."""

import doctest
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from flax import nnx
from ml_collections import ConfigDict

import clutrr_jax
from clutrr_jax.data.dataset import load
from clutrr_jax.data.records import positional_ids, story_ids
from clutrr_jax.data.vocabulary import build_vocabulary
from clutrr_jax.evaluation.metrics import METRICS
from clutrr_jax.evaluation.predictions import Predictions
from clutrr_jax.language_models.export import export
from clutrr_jax.report import __main__ as report
from clutrr_jax.report.evaluation import COLUMNS
from clutrr_jax.runs import run_experiment
from clutrr_jax.settings import TRAIN, default_settings
from generator.relations.kinship import RELATIONS

DOCS = Path(__file__).parent.parent / "docs"


class Constant(nnx.Module):
    """Logits of a given shape that depend on no story."""

    def __init__(self, config, sizes, *, rngs):
        self.value = nnx.Param(jnp.zeros(config.columns))

    def __call__(self, batch):
        return jnp.tile(self.value[...], (len(batch.n_edge) - 1, 1))


@pytest.fixture(scope="module")
def dataset(small_folder) -> clutrr_jax.Dataset:
    return clutrr_jax.load(small_folder)


@pytest.fixture(scope="module")
def trained(dataset, tmp_path_factory) -> clutrr_jax.Trained:
    folder = tmp_path_factory.mktemp("api") / "run"
    return clutrr_jax.train("edge_rnn", dataset, replicas=2, epochs=1, seed=3, folder=folder)


@pytest.mark.parametrize("page", ["api.md", "data.md", "language_models.md"])
def test_examples_of_a_page(page: str, registry) -> None:
    failed, count = doctest.testfile(
        str(DOCS / page), module_relative=False, optionflags=doctest.ELLIPSIS
    )
    assert failed == 0 < count


def test_train_equals_launch(trained, dataset, small_folder, tmp_path) -> None:
    config = default_settings("train", "edge_rnn")
    config.data, config.seed = str(small_folder), 3
    config.train.replicas, config.train.epochs = 2, 1
    run_experiment(config, tmp_path / "run")
    file = Path("edge_rnn", "predictions.csv")
    assert (tmp_path / "run" / file).read_bytes() == (trained.folder / file).read_bytes()


def test_the_report_of_a_data_set_in_memory_can_be_rebuilt(trained, dataset) -> None:
    page = trained.report()
    before = page.read_bytes()
    page.unlink()
    report.main([str(trained.folder)])
    assert page.read_bytes() == before
    again = clutrr_jax.train(
        "edge_rnn", dataset, replicas=2, epochs=1, seed=3, folder=trained.folder
    )
    assert again.results["rows"] == trained.results["rows"]


def test_a_run_folder_belongs_to_one_data_set(trained, dataset, small_folder) -> None:
    other = clutrr_jax.Dataset("other", dataset.train, dataset.test.select(np.arange(40)))
    with pytest.raises(clutrr_jax.InputError, match="not the data set of this run"):
        clutrr_jax.train("edge_rnn", other, replicas=2, epochs=1, seed=3, folder=trained.folder)
    assert len(load(trained.folder / "data").test) == len(dataset.test)


def test_evaluate_reads_names_ids_and_text(trained, dataset) -> None:
    best = trained.predictions["edge_rnn"].relation
    names = [[RELATIONS[r] for r in replica] for replica in best]
    given = {
        "run": trained.predictions["edge_rnn"],
        "ids": best,
        "names": names,
        "text": [[f"They think. Answer: {name}" for name in replica] for replica in names],
        "first": best[0].tolist(),
        "0-d": [np.array(r) for r in best[0]],
        "0-d text": [np.array(name) for name in names[0]],
        "text of NumPy": tuple(map(np.str_, names[0])),
        "series": pd.Series(names[0]),
    }
    rows = clutrr_jax.evaluate(given, dataset).accuracy
    expected = [row["accuracy"] for row in trained.accuracy if row["model"] == "edge_rnn"]
    for name in ("run", "ids", "names", "text"):
        assert [row["accuracy"] for row in rows if row["model"] == name] == expected
    first, *others = (
        [(r["accuracy"], r["replicas"]) for r in rows if r["model"] == name]
        for name in ("first", "0-d", "0-d text", "text of NumPy", "series")
    )
    assert others == [first] * 4 and {replicas for _, replicas in first} == {1}
    file = trained.folder / "edge_rnn" / "predictions.csv"
    of_file = clutrr_jax.evaluate(file, dataset).accuracy
    assert [row["accuracy"] for row in of_file if row["model"] == "edge_rnn"] == expected


def test_predictions_with_the_ids_of_the_stories_are_aligned(dataset) -> None:
    """In any order, also replicas. Sorted answers without ids would be those of other stories."""
    ids, names = story_ids(dataset.test), [RELATIONS[t] for t in dataset.test.target]
    answers = pd.Series(names, ids).sort_values()
    given = {
        "series": answers,
        "named": answers.rename_axis("id"),
        "positions": pd.Series(names, positional_ids(dataset.test)).sample(frac=1, random_state=0),
        "list": [answers, answers[::-1]],
        "replicas": pd.DataFrame([answers, answers]),
    }
    for predictions in (given, pd.DataFrame({"series": answers})):
        rows = clutrr_jax.evaluate(predictions, dataset).accuracy
        assert {row["accuracy"] for row in rows if row["model"] in predictions} == {1.0}
    for wrong in (answers[1:], pd.concat([answers, answers[:1]]), answers.rename({ids[0]: "x"})):
        with pytest.raises(clutrr_jax.InputError, match=r"expected 0, 1, \.\.\. in this order, or"):
            clutrr_jax.evaluate({"a": wrong}, dataset)


def test_ids_that_may_be_positions_and_columns_of_ids_are_refused(dataset) -> None:
    """Data whose ids are the numbers of their rows before they were shuffled."""
    names = [RELATIONS[t] for t in dataset.test.target]
    ids = [str(i) for i in np.random.default_rng(0).permutation(len(names))]
    shuffled = replace(dataset, test=replace(dataset.test, ids=ids))
    answers = pd.Series(names, [*map(int, ids)]).sort_index()
    for index in (answers.index, None):
        with pytest.raises(clutrr_jax.InputError, match="may be positions or the ids of the test"):
            clutrr_jax.evaluate({"a": pd.Series(answers.tolist(), index)}, shuffled)
    for right in (answers.rename_axis("id"), answers.sample(frac=1, random_state=0), names):
        rows = clutrr_jax.evaluate({"a": right}, shuffled).accuracy
        assert {row["accuracy"] for row in rows if row["model"] == "a"} == {1.0}
    frame = pd.DataFrame({"story_id": story_ids(dataset.test), "a": names}).sample(frac=1)
    with pytest.raises(clutrr_jax.InputError, match='of "story_id": ids of stories, expected'):
        clutrr_jax.evaluate(frame.reset_index(drop=True), dataset)


def test_missing_answers_in_memory_count_as_wrong(dataset) -> None:
    """None, NaN, NA and "", also in a column of ids, which pandas makes numbers with a point."""
    target = dataset.test.target
    names = [RELATIONS[t] for t in target]
    frame = pd.DataFrame({
        "none": [None, *names[1:]],
        "empty": ["", *names[1:]],
        "nan": [np.nan, *names[1:]],
        "ids": [None, *target[1:].tolist()],
        "NA": pd.array([pd.NA, *target[1:].tolist()], dtype="Int64"),
    })  # fmt: skip
    assert frame["ids"].dtype == float
    given = {
        **frame.to_dict("series"),
        "two": [["aunt"] * 80, [None] * 80],
        "none at all": [""] * 80,
    }
    for scores in (clutrr_jax.evaluate(frame, dataset), clutrr_jax.evaluate(given, dataset)):
        rows = scores.results["rows"]
        for name in frame:
            of_name = [row for row in rows if row["model"] == name]
            assert sum(row["unmapped"] for row in of_name) == 1
            assert sorted(row["accuracy"] for row in of_name) == [0.95, 1, 1, 1]
            assert [row["count"] for row in of_name] == [20] * 4
    for name in ("two", "none at all"):
        assert sum(row["unmapped"] for row in rows if row["name"] == name) == 80


def test_the_table_as_a_data_frame(trained) -> None:
    frame = trained.accuracy.to_pandas()
    assert list(frame.columns) == [*COLUMNS, *list(METRICS)[1:]]
    assert len(frame) == len(trained.accuracy)
    (row,) = frame[(frame.model == "edge_rnn") & (frame.task == "1.3")].to_dict("records")
    assert row == next(r for r in trained.accuracy if (r["model"], r["k"]) == ("edge_rnn", 3))


def test_tables_as_text_and_as_html(trained) -> None:
    header, *lines = repr(trained.accuracy).splitlines()
    assert header.split()[: len(COLUMNS)] == list(COLUMNS)
    assert len(lines) == len(trained.accuracy)
    for shown in (trained.accuracy, trained):
        text, html = repr(shown), shown._repr_html_()
        assert html.count("<tr>") == len(text.splitlines())
        cells = re.sub(r"<[^>]*>", " ", html).replace("&emsp;", " ")
        assert cells.split() == text.split()


@pytest.mark.parametrize(
    ("predictions", "problem"),
    [
        ({}, "predictions: none"),
        (np.zeros(80, int), "predictions: an array, expected a name"),
        ([["aunt"] * 80], "expected names for them"),
        (pd.DataFrame({"id": range(80), "a": "aunt"}), 'of "id": ids of stories'),
        ({"a": pd.Series(["aunt"] * 80).rename_axis("id")}, "index with labels such as '0'"),
        ({"a": pd.Series(["aunt"] * 80)[::-1]}, r"'79', expected 0, 1, \.\.\. in this order"),
        ({"a": pd.DataFrame([["aunt"] * 80])[range(79, -1, -1)]}, 'of "a": columns with labels'),
        ({"a": [["aunt"] * 80, ["aunt"]]}, 'of "a": shape'),
        ({"a": Predictions(*[np.zeros((1, 3), int)] * 3)}, r"\(1, 3\).* 80 test stories"),
        ({"a": ["aunt"] * 79 + [{}]}, 'of "a", story 79: {}, expected a relation name'),
        ({"a": [0] * 79 + [len(RELATIONS)]}, 'of "a", story 79: 22'),
        ({"a": ["7"] * 79 + [None]}, 'of "a": all are numbers as text, expected names'),
        ({"given rules": ["aunt"] * 80}, "two rows named 'given rules'"),
    ],
)
def test_wrong_predictions_are_one_line(predictions, problem, dataset) -> None:
    with pytest.raises(clutrr_jax.InputError, match=problem):
        clutrr_jax.evaluate(predictions, dataset)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"models": "nope"}, 'no model "nope"'),
        ({"models": ["gat", 3]}, r"models: \['gat', 3\], expected names such as 'gat'"),
        ({"dataset": 5}, "dataset: int, expected a Dataset or its path"),
        ({"replicas": 0}, "train.replicas 0: expected at least 1"),
        ({"settings": {"gat.lr": 1}}, r'^no setting "gat\.lr"; expected one of gat\.directions, '),
        ({"settings": {"generate.train": "1.2"}}, 'no setting "generate.train"; expected one'),
        ({"settings": {"train.epochs": 5}}, 'setting "train.epochs": expected as an argument'),
        ({"settings": {"train.steps": "x"}}, "setting \"train.steps\": 'x', expected int$"),
    ],
)
def test_wrong_settings_are_one_line(arguments, problem, dataset, tmp_path) -> None:
    with pytest.raises(clutrr_jax.InputError, match=problem):
        clutrr_jax.train(**({"models": "gat", "dataset": dataset, "folder": tmp_path} | arguments))


def test_wrong_generator_settings_and_kinds_are_one_line(dataset) -> None:
    with pytest.raises(clutrr_jax.InputError, match='unknown setting "colour"'):
        clutrr_jax.generate(colour="red")
    few = build_vocabulary(dataset.train, entities=2)
    for problem, arguments in {
        'kind "images": expected one of graph': {"kind": "images"},
        "batch_size 0: expected 1 or more": {"batch_size": 0},
        "seed -1: expected 0 or more": {"seed": -1},
        "stories: Dataset, expected dataset": {"stories": dataset},
        "at most 2, the entities": {"kind": "tokens", "vocabulary": few},
    }.items():
        with pytest.raises(clutrr_jax.InputError, match=problem):
            clutrr_jax.batches(**{"stories": dataset.train} | arguments)


def test_no_stories_have_no_batches(dataset) -> None:
    assert list(clutrr_jax.batches(dataset.test.select(np.arange(0)))) == []


@pytest.mark.parametrize(
    ("name", "module", "options", "problem"),
    [
        ("gat", Constant, {}, "that of a built-in model or setting, expected another"),
        ("my model", Constant, {}, "expected a name of letters"),
        ("five", 5, {}, "5, expected a class of Flax NNX"),
        ("mine", Constant, {"kind": "states"}, 'kind "states": expected one of graph'),
        ("mine", Constant, {"config": {"activation": max}}, "not JSON serializable"),
        ("mine", Constant, {"config": [1]}, r"settings \[1\].*expected names with"),
        ("mine", Constant, {"config": {"train": {"lr": 1e-3}}}, "in the group train some of"),
    ],
)
def test_a_registered_model_is_checked(name, module, options, problem: str, registry) -> None:
    with pytest.raises(clutrr_jax.InputError, match=problem):
        clutrr_jax.register(name, module, **options)


class Attending(Constant):
    def attention(self, queries, keys):
        """A method of its own that has the name of an optional one."""


class Reader(Constant):
    def read(self):
        """A method of its own that has the name of an optional one."""


@pytest.mark.parametrize(
    ("module", "columns", "problem"),
    [
        (Constant, 21, r"model Constant: logits of shape \(100, 21\), expected \(100, 22\)"),
        (Attending, 22, r"method attention\(self, queries, keys\): expected attention"),
        (Reader, 22, r"method read\(self\): expected read"),
    ],
)  # fmt: skip
def test_a_model_is_checked_before_training(
    module, columns: int, problem: str, registry, dataset, tmp_path
) -> None:
    clutrr_jax.register("mine", module, config={"columns": columns})
    with pytest.raises(clutrr_jax.InputError, match=problem):
        clutrr_jax.train("mine", dataset, replicas=1, epochs=1, folder=tmp_path)


def test_what_is_given_ranks_before_the_defaults_of_a_model(registry, dataset, tmp_path) -> None:
    own = {"replicas": 1, "epochs": 5, "batch": 30}
    clutrr_jax.register(
        "mine", Constant, config={"columns": len(RELATIONS), "train": own | {"learning_rate": 1e-2}}
    )
    given = {"train.steps": 2, "train.ema_decay": 0.9, "mine.train.batch": 20}
    run = clutrr_jax.train("mine", dataset, settings=given, folder=tmp_path)
    settings = json.loads((tmp_path / "mine" / "model.json").read_text())["settings"]
    expected = TRAIN | own | {"learning_rate": 1e-2, "epochs": None, "steps": 2, "batch": 20}
    expected["ema_decay"] = 0.9
    assert settings == {"columns": len(RELATIONS), "train": expected}
    assert run.results["models"]["mine"]["settings"] == settings
    for changes in ({"train.steps": 1}, {"mine.train.batch": 10}, {"train.ema_decay": 0.5}):
        with pytest.raises(clutrr_jax.InputError, match="belongs to a run with another config"):
            clutrr_jax.train("mine", dataset, settings=given | changes, folder=tmp_path)


def test_registered_models_of_extreme_logits(registry, dataset, tmp_path) -> None:
    """Logits that are not finite are predictions with probability zero; those of minus infinity
    exclude relations. A name can be registered again; three replicas are the default."""

    class Broken(Constant):
        def __call__(self, batch):
            return super().__call__(batch) * jnp.nan

    class Masked(Constant):
        def __call__(self, batch):
            return super().__call__(batch).at[:, 2:].set(-jnp.inf)

    nested = ConfigDict({"columns": 7, "group": ConfigDict({"size": 3})})
    clutrr_jax.register("broken", Broken, config=nested)
    clutrr_jax.register("broken", Broken, config={"columns": 7})
    clutrr_jax.register("masked", Masked, config={"columns": len(RELATIONS)})
    found = clutrr_jax.train(
        ["broken", "masked"], dataset, epochs=1, folder=tmp_path,
        settings={"broken.columns": len(RELATIONS)},
    )  # fmt: skip
    assert (found.predictions["broken"].probability == 0).all()
    assert (found.predictions["masked"].probability == 0.5).all()
    assert {run["state"] for run in found.results["runs"]} == {"finished"}
    assert {model["replicas"] for model in found.results["models"].values()} == {3}


def test_a_folder_with_other_files_is_not_overwritten(dataset, tmp_path) -> None:
    (tmp_path / "results.md").write_text("mine")
    with pytest.raises(clutrr_jax.InputError, match="holds other files"):
        clutrr_jax.train("gat", dataset, replicas=1, epochs=1, folder=tmp_path)
    assert (tmp_path / "results.md").read_text() == "mine"


def test_stories_of_a_failed_start_are_replaced(dataset, tmp_path) -> None:
    few = replace(dataset, train=dataset.train.select(np.arange(9)))
    for stories in (dataset, few):
        with pytest.raises(clutrr_jax.InputError, match="expected a multiple of heads 7"):
            clutrr_jax.train("gat", stories, settings={"gat.heads": 7}, folder=tmp_path)
        assert len(clutrr_jax.load(tmp_path / "data").train) == len(stories.train)


def test_generator_settings_may_be_paths_and_numbers_of_numpy() -> None:
    made = clutrr_jax.generate(train_rows=np.int64(3), test_rows=(2, 1), test=["1.2", "1.3"])
    assert (len(made.train), len(made.test)) == (6, 3)
    with pytest.raises(clutrr_jax.InputError, match=r"nowhere\.json"):
        clutrr_jax.generate(bank=Path("nowhere.json"))


def test_exported_prompts_are_in_the_order_of_evaluate(dataset, tmp_path) -> None:
    export(dataset, tmp_path, "jsonl", "zero-shot")
    rows = [json.loads(line) for line in (tmp_path / "prompts.jsonl").read_text().splitlines()]
    scores = clutrr_jax.evaluate({"oracle": [row["target"] for row in rows]}, dataset)
    assert [row["accuracy"] for row in scores.accuracy if row["model"] == "oracle"] == [1.0] * 4


def test_modules_without_jax_do_not_import_it() -> None:
    code = (
        "import sys, clutrr_jax, clutrr_jax.language_models.answers; "
        "sys.exit('jax' in sys.modules or 'train' not in dir(clutrr_jax))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("relation", [-2, 22])
def test_predictions_with_ids_of_no_relation_are_refused(relation: int, dataset) -> None:
    ids = np.full((1, len(dataset.test)), relation)
    with pytest.raises(clutrr_jax.InputError, match="expected relation ids from 0 to 21"):
        clutrr_jax.evaluate({"m": Predictions(ids, ids, np.ones(ids.shape))}, dataset)


def test_a_model_is_loaded_from_a_path() -> None:
    with pytest.raises(clutrr_jax.InputError, match="folder: NoneType, expected text"):
        clutrr_jax.load_model(None)
