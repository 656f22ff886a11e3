"""The public functions of `clutrr_jax`.

Wrong data and settings raise `InputError`, whose message is one line.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jraph
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import build_arrays
from clutrr_jax.data.batching import InputKind, TokenBatch, chunk, pack, plan_shapes, targets
from clutrr_jax.data.dataset import Dataset, dataset_of, load
from clutrr_jax.data.prepare import Prepared, prepare
from clutrr_jax.data.records import Records, Story
from clutrr_jax.data.vocabulary import Vocabulary, build_vocabulary, entity_pool
from clutrr_jax.evaluation.predictions import (
    Predictions,
    prediction_file,
    read_predictions,
    read_run,
)
from clutrr_jax.language_models.in_memory import to_submissions
from clutrr_jax.language_models.reward import reward
from clutrr_jax.language_models.submissions import read_ids, read_submissions
from clutrr_jax.models import MODELS, Spec
from clutrr_jax.models.setting import as_settings
from clutrr_jax.report.accuracy import accuracy_table
from clutrr_jax.report.evaluation import Evaluation
from clutrr_jax.report.evaluation import evaluate as score_submissions
from clutrr_jax.run import configure_jax, has_begun
from clutrr_jax.runs import run_experiment
from clutrr_jax.settings import TRAIN, TrainConfig, change, default_settings, model_names
from clutrr_jax.streams import Stream, numpy_rng
from clutrr_jax.trained_model import Answer, Model, load_model
from clutrr_jax.training.writers import Own, Writer
from generator.errors import InputError, check_range, one_line, one_of
from generator.relations.kinship import RELATIONS
from generator.stories.config import Config
from generator.tables.cells import is_frame
from generator.write import generate_rows

KINDS = ("graph", "pairs", "tokens")

InputError.__module__ = "clutrr_jax"  # the public name, which tracebacks print

__all__ = [
    "MODELS", "RELATIONS", "Answer", "Dataset", "Evaluation", "InputError", "Model", "Story",
    "TokenBatch", "Trained", "batches", "evaluate", "generate", "load", "load_model", "register",
    "reward", "targets", "train",
]  # fmt: skip


def generate(
    train: str | Sequence[str] = "1.2,1.3",
    test: str | Sequence[str] = "1.2,1.3,1.4,1.5,1.6,1.7,1.8,1.9,1.10",
    *,
    train_rows: int | Sequence[int] = 5000,
    test_rows: int | Sequence[int] = 100,
    seed: int = 0,
    **settings: Any,
) -> Dataset:
    """Generates a data set.

    Args:
      train: tasks T.K of the train stories: noise type T (1 is clean), clause length K.
      test: tasks of the test stories.
      train_rows: train stories per task, one number or one per task.
      test_rows: test stories per task, one number or one per task.
      seed: the same seed and settings give the same stories.
      **settings: other settings of the generator (`python -m generator --help`), such as
        `language="synthetic"`.
    Raises:
      InputError: unknown or unusable settings.
    """
    settings |= {"train": train, "test": test, "train_rows": train_rows, "test_rows": test_rows}
    values = {
        name: ",".join(map(str, value)) if isinstance(value, list | tuple) else value
        for name, value in settings.items()
    }
    config = Config.from_json({**values, "seed": seed})
    return dataset_of("generated stories", generate_rows(config))


def batches(
    stories: Records,
    kind: InputKind = "graph",
    batch_size: int = 100,
    *,
    seed: int | None = None,
    vocabulary: Vocabulary | None = None,
) -> Iterator[jraph.GraphsTuple | TokenBatch]:
    """Returns the stories once, as padded batches for a training loop of your own.

    Without a seed the stories come in their order and all batches have the same shape. With a seed
    they are shuffled, and token and pair batches have up to four shapes. `targets(batch)` returns
    the target and the mask of each row; rows of padding are masked.

    Args:
      stories: `dataset.train` or `dataset.test`.
      kind: "graph" and "pairs" yield a `jraph.GraphsTuple` whose last graph is padding; "tokens"
        yields a `TokenBatch`. The stories of a batch of "pairs" have similar numbers of people.
      batch_size: stories of a batch.
      seed: of the order of the stories and of the entity ids that stand for people.
      vocabulary: of the tokens, by default that of these stories. Pass `dataset.vocabulary` for
        the test stories of a model that is trained on `dataset.train`.
    Raises:
      InputError: an unknown kind, a batch size below 1, or a negative seed.
    """
    if not isinstance(stories, Records):
        raise InputError(f"stories: {type(stories).__name__}, expected dataset.train or .test")
    one_of("kind", kind, KINDS)
    for name, value, least in (("batch_size", batch_size, 1), ("seed", seed or 0, 0)):
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise InputError(f"{name}: {value!r}, expected an integer")
        check_range(name, int(value), least)
    if not isinstance(vocabulary, Vocabulary | None):
        raise InputError(f"vocabulary: {type(vocabulary).__name__}, expected dataset.vocabulary")
    vocabulary = vocabulary or build_vocabulary(stories, entity_pool(stories))
    arrays = build_arrays(stories, vocabulary, seed or 0)
    size = min(batch_size, len(stories))
    shapes, buckets = plan_shapes(kind, arrays, size, 1 if seed is None else None)
    rng = numpy_rng(Stream.BATCHES, seed or 0)
    order = [
        (rows, shape)
        for bucket, shape in zip(buckets, shapes, strict=True)
        for rows in chunk(bucket if seed is None else rng.permutation(bucket), size)
    ]
    if seed is not None:
        order = [order[i] for i in rng.permutation(len(order))]
    return (_pack(arrays, jnp.asarray(rows), shape) for rows, shape in order)


_pack = jax.jit(pack, static_argnums=2)


def register(
    name: str,
    model: Callable[..., Any],
    kind: InputKind = "graph",
    config: Mapping[str, Any] | None = None,
) -> None:
    """Adds a model to the registry `MODELS`, or replaces one that was registered before.

    Args:
      name: of the model.
      model: a Flax NNX module `model(config, sizes, rngs=...)`. Called with a batch of this kind,
        it returns relation logits, float32 [B, relations].
      kind: of the batches it reads, see `batches`.
      config: settings of the model by name: default values, which are numbers or text, or
        `Setting` (clutrr_jax/models/setting.py), or groups of them. The group `train` has its
        train settings, where they are not the usual ones.
    Raises:
      InputError: a name that is not an identifier or that a built-in model or a setting has, no
        class, another kind, or settings of another type.
    """
    if not (isinstance(name, str) and name.isidentifier()):
        raise InputError(f'model "{name}": expected a name of letters, digits and underscores')
    if name in _RESERVED:
        raise InputError(f'model "{name}": that of a built-in model or setting, expected another')
    if not callable(model):
        raise InputError(f'model "{name}": {model!r}, expected a class of Flax NNX')
    one_of("kind", kind, KINDS)
    try:
        settings = dict(config or {})
        train = ConfigDict(settings.pop("train", {})).to_dict()
        spec = Spec(model, kind, as_settings(settings), train=train)
        json.dumps(spec.config)  # as config.json of a run holds them
        TrainConfig.resolve(train)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f'model "{name}": settings {config!r} ({one_line(error)}), expected names with numbers '
            f"or text, and in the group train some of {', '.join(TRAIN)}"
        ) from None
    MODELS[name] = spec


_RESERVED = set(default_settings("", ""))  # built-in models and other settings


class Trained(Evaluation):
    """Models that `train` has trained and tested.

    Attributes:
      folder: the folder of the experiment.
      results: the content of its `results.json`.
      predictions: of each model, and of each point of its sweep, on the test stories.
    """

    def __init__(self, folder: Path, dataset: Dataset):
        super().__init__(json.loads((folder / "results.json").read_text()))
        self.folder, test = folder, dataset.records("test")
        self.predictions: dict[str, Predictions] = {
            model: read_run(folder / model, test) for model in self.results["models"]
        }
        for model, one in self.results["models"].items():
            for point in one.get("sweep", {}).get("points", ()):
                path = folder / model / prediction_file(point["name"].removeprefix(model))
                self.predictions[point["name"]] = read_predictions([path], test)

    def model(self, name: str | None = None) -> Model:
        """Returns a trained model, by default the only one, or that of a point of its sweep, such
        as "gat (learning_rate=.001)"."""
        if name is None and len(self.results["models"]) == 1:
            (name,) = self.results["models"]
        one_of("model", str(name), list(self.predictions))
        model, _, point = str(name).partition(" (")
        return load_model(self.folder / model, point.removesuffix(")"))

    def report(self) -> Path:
        """Returns the path of the interactive report, one HTML file."""
        return self.folder / "report.html"

    def tables(self) -> list[list[list[str]]]:
        return [accuracy_table(self.results).texts()]

    def notes(self) -> list[str]:
        return []


def train(
    models: str | Sequence[str],
    dataset: Dataset | str | Path,
    *,
    replicas: int | None = None,
    epochs: int | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    start: Model | str | Path | None = None,
    sweep: Mapping[str, Sequence[float]] | None = None,
    writers: Sequence[Writer] = (),
    callback: Callable[[dict[str, Any]], Any] | None = None,
) -> Trained:
    """Trains and tests models.

    Args:
      models: names in `MODELS`.
      dataset: with train and test stories, or its path.
      replicas: number of replicas, which differ in their seed; by default 3.
      epochs: passes over the train stories; by default until the dev loss no longer improves.
      seed: of the first replica.
      settings: other settings by name, such as {"gat.dropout": 0.3} (clutrr_jax/settings.py).
      folder: the run folder, by default a new temporary one. The same call resumes a run.
      start: a trained model, or the folder of its run, whose parameters, settings and vocabulary
        the training starts with. `models` is its name, and the replicas are as many as it has.
      sweep: settings by name with the values that they have in turn, such as
        {"train.learning_rate": [3e-4, 1e-3]}, or several, whose grid is trained in one
        program. Dev loss chooses the point that is the result of the model.
      writers: objects with `write(step, values)` and `close()`: after each epoch `step`, `write`
        gets the metrics by name, `NAME/replica_I` for a metric of a replica.
      callback: called after each epoch with its line of `metrics.jsonl`. If it returns True, the
        training is finished with this epoch. What it raises leaves the run to be resumed.
    Raises:
      InputError: a wrong setting, a data set without train or test stories, or a folder that holds
        another run, or a start with other relations.
    """
    dataset = _dataset(dataset)
    if not isinstance(models, str):
        if not isinstance(models, Sequence) or not all(isinstance(name, str) for name in models):
            raise InputError(f"models: {models!r}, expected names such as {next(iter(MODELS))!r}")
        models = ",".join(models)
    names = model_names(models)
    watching = _own(names, writers, callback)
    config = default_settings("train", ",".join(names))
    for argument, given in {"settings": settings, "sweep": sweep}.items():
        if not isinstance(given, Mapping | None):
            raise InputError(f"{argument}: {given!r}, expected a dict of settings by name")
    if start is not None and not isinstance(start, Model):
        start = load_model(start)
    if start:
        if names != [start.name]:
            raise InputError(f"start: a {start.name}, expected models={start.name!r}")
        for records in filter(None, (dataset.train, dataset.test)):
            start.check_algebra(records)
        own = {name: value for name, value in start.settings.items()
               if name != "train" and f"{start.name}.{name}" not in (sweep or {})}  # fmt: skip
        config[start.name].update(own)
        if replicas not in (None, start.replicas):
            raise InputError(f"replicas {replicas}: start has {start.replicas}, expected as many")
        replicas = start.replicas
    arguments = {"seed": seed, "train.replicas": replicas, "train.epochs": epochs}
    settings = dict(settings or {})
    if both := arguments.keys() & settings:
        raise InputError(f'setting "{min(both)}": expected as an argument of train')
    given = arguments | settings
    three = {f"{name}.train.replicas": 3 for name in names if "replicas" not in MODELS[name].train}
    for name, value in ((three if replicas is None else {}) | given).items():
        if str(name).partition(".")[0] in ("name", "models", "data", "generate"):
            raise InputError(f'no setting "{name}"; expected one such as train.learning_rate')
        change(config, str(name), value)
    for name, values in dict(sweep or {}).items():
        change(config, f"sweep.{name}", values)
    folder = Path(folder or tempfile.mkdtemp(prefix="clutrr_jax_"))
    is_ours = (folder / "data.json").exists()
    if not is_ours and any(folder.glob("[!.]*")):
        raise InputError(f"{folder}: holds other files, expected a new folder")
    configure_jax()
    data = prepare(dataset, vocabulary=start.vocabulary if start else None)

    def prepare_stories(config: ConfigDict, stories: Path) -> Prepared:
        if not any(map(has_begun, folder.glob("*"))):  # for `python -m clutrr_jax.report`
            dataset.to_parquet(stories)
        return data

    parameters = start.arrays if start else None
    _, failed = run_experiment(config, folder, prepare_stories, parameters, watching)
    for name, reason in failed.items():
        raise InputError(f"{name}: {reason}")
    return Trained(folder, dataset)


def _own(names: Sequence[str], writers: Any, callback: Any) -> Own:
    """Returns the writers and the callback of a user for the training of a model."""
    if not isinstance(writers, list | tuple) or not all(
        isinstance(w, Writer) and not isinstance(w, type) for w in writers
    ):
        raise InputError(f"writers: {writers!r}, expected objects with write and close in a list")
    if not (callback is None or callable(callback)):
        raise InputError(f"callback: {callback!r}, expected a function")
    if (writers or callback) and len(names) > 1:
        raise InputError(
            f"models {','.join(names)}: expected one, as writers or a callback are those of a model"
        )
    return Own(writers, callback)


def _dataset(data: Any) -> Dataset:
    """Returns a data set, which is read if a path is given."""
    if isinstance(data, str | Path):
        return load(data)
    if not isinstance(data, Dataset):
        raise InputError(f"dataset: {type(data).__name__}, expected a Dataset or its path")
    return data


def evaluate(
    predictions: Mapping[str, Any] | str | Path | Sequence[str | Path],
    dataset: Dataset | str | Path,
    ids: str | Path | None = None,
) -> Evaluation:
    """Scores predictions next to the baselines, with paired tests between them.

    Args:
      predictions: files of predictions as for `python -m clutrr_jax.score`; or for each name such a
        file, the `Predictions` of a run, or predictions in the order of `dataset.test`: relation
        names or ids, or free text of a language model, [S] or [replicas, S]; None, NaN and "" are
        missing answers. A data frame has one column for each name. Files may have a part of the
        stories, on which they are scored.
      dataset: with test stories, or its path.
      ids: a file with the ids of some test stories, one in each line, on which the predictions are
        scored as well.
    Raises:
      InputError: predictions for other stories, or a data set without test stories.
    """
    dataset = _dataset(dataset)
    test = dataset.records("test")
    if hasattr(predictions, "shape") and not is_frame(predictions):
        raise InputError("predictions: an array, expected a name for it, as in {name: array}")
    if hasattr(predictions, "items"):
        predictions = dict(predictions.items())
    if not predictions:
        raise InputError("predictions: none, expected those of at least one model")
    if isinstance(predictions, Mapping):
        submissions = [
            submission
            for name, values in predictions.items()
            for submission in to_submissions(str(name), values, test)
        ]
    else:
        files = [predictions] if isinstance(predictions, str | Path) else list(predictions)
        if not all(isinstance(file, str | Path) for file in files):
            raise InputError("predictions: no files, expected names for them, as in {name: list}")
        submissions = read_submissions(files, test)
    return score_submissions(dataset, submissions, read_ids(ids, test))
