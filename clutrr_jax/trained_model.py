"""A trained model as an object: `load_model` reads it from the folder of its run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import nnx
from flax.traverse_util import flatten_dict
from ml_collections import ConfigDict

from clutrr_jax.data.arrays import StoryArrays, build_arrays
from clutrr_jax.data.batching import GRAPHS
from clutrr_jax.data.dataset import Dataset, load
from clutrr_jax.data.prepare import TEST_SEED, sizes_of
from clutrr_jax.data.records import Records, Story
from clutrr_jax.data.vocabulary import VOCABULARY, Vocabulary, entity_pool, read_vocabulary
from clutrr_jax.evaluation.extraction import THRESHOLD
from clutrr_jax.evaluation.frozen_states import encoder_input
from clutrr_jax.evaluation.predict import per_story
from clutrr_jax.evaluation.predictions import Predictions
from clutrr_jax.evaluation.proofs import in_sentences, prove_extracted
from clutrr_jax.experiment import SUMMARY
from clutrr_jax.language_models.submissions import Submission
from clutrr_jax.models import MODELS, has_method
from clutrr_jax.models.check import check_input
from clutrr_jax.models.functional import ModelDef
from clutrr_jax.models.prover import gendered
from clutrr_jax.models.swept import with_values
from clutrr_jax.report.evaluation import Evaluation, evaluate
from clutrr_jax.training.checkpoints import Checkpoints
from clutrr_jax.training.inference import Predictor, predict_all
from clutrr_jax.training.replicas import Replicas
from generator.errors import InputError, one_of
from generator.files import atomic_write, read_json
from generator.relations.algebra import Algebra
from generator.relations.algebras import DEFAULT, algebra_of
from generator.relations.deduction import Fact, rule_heads
from generator.tables.cells import is_frame, plain

SHOWN = 5  # relations of a printed answer
EQUAL = 1e-4  # relative difference of probabilities that count as equal


class Answer(NamedTuple):
    """What a model says about one story."""

    story: Story
    relations: Mapping[str, float]  # probabilities, the highest first: mean over the replicas
    # Facts that the first replica read from the text, with their probabilities; None for a model
    # that reads no facts from text.
    facts: Sequence[tuple[str, str, str, float]] | None = None
    # The most probable proof by its rules, a sentence for each step, and its probability; None if
    # the model has no rules, or the answer does not follow.
    proof: Sequence[str] | None = None
    proof_probability: float | None = None
    algebra: Algebra = DEFAULT  # of the relations

    @property
    def relation(self) -> str | None:
        """The most probable relation. None if the model derives nothing about the people of the
        query, so that all relations are equally probable, whatever the gender."""
        probabilities = [self.relations[name] for name in self.algebra.relations]
        predicates = np.bincount(self.algebra.coarse.predicate, probabilities)
        if predicates.max() < (1 + EQUAL) * predicates.mean():
            return None
        return next(iter(self.relations))

    def __repr__(self) -> str:
        lines = [self.algebra.question(*self.story.query)]
        if self.relation is None:
            lines.append("  nothing is derived: all relations are equally probable")
        else:
            lines += [f"  {name} {p:.3f}" for name, p in list(self.relations.items())[:SHOWN]]
        if self.facts is not None:
            read = [f"  {self.algebra.sentence(*words)} ({p:.2f})" for *words, p in self.facts]
            lines += ["Facts that it reads:", *(read or ["  none"])]
        if self.proof is not None:
            lines.append(f"Proof with probability {self.proof_probability:.3f}:")
            lines += [f"  {step}" for step in self.proof or ["The fact is stated."]]
        return "\n".join(lines)


class Model:
    """A trained model, with all of its replicas.

    Attributes:
      name: in the registry.
      settings: of the model, with its train settings.
      vocabulary: of its train stories.
      algebra: of the relations that it predicts.
      params: parameters that are tested, a tree of dictionaries of arrays [replicas, ...].
      replicas: their number.
    """

    def __init__(
        self,
        name: str,
        settings: Mapping[str, Any],
        vocabulary: Vocabulary,
        algebra: Algebra,
        seed: int,
        arrays: Mapping[str, np.ndarray],
        started: bool = False,
    ):
        """From the arrays of a checkpoint, by path; `seed` is that of the first replica, `started`
        whether the training began with the parameters of another one."""
        self.name, self.settings, self.vocabulary = name, dict(settings), vocabulary
        self.algebra, self._started = algebra, started
        config, spec, sizes = ConfigDict(self.settings), MODELS[name], sizes_of(vocabulary, algebra)
        self._encode = None
        if spec.encoder:
            sizes, self._encode = encoder_input(sizes, config)
        definition = ModelDef(spec, config, sizes, config.train.entities == "learned")
        self.replicas: int = config.train.replicas
        self._predictor = Predictor(definition, Replicas(self.replicas, seed))
        params, buffers = jax.eval_shape(definition.init, jax.random.key(0))
        self._buffers = self._place(arrays, ".buffers", buffers)
        self._tested = self._last = self._place(arrays, ".ema_params", params)
        if config.train.selection != "last":
            self._tested = self._place(arrays, ".best_params", params)

    def _place(self, arrays: Mapping[str, np.ndarray], prefix: str, shapes: Any) -> Any:
        """The arrays of a tree on the devices, as many replicas as training had there."""
        replicas = self._predictor.replicas

        def placed(path: Any, shape: jax.ShapeDtypeStruct) -> jax.Array:
            name = prefix + jax.tree_util.keystr(path)
            found = arrays.get(name)
            if found is None or found.shape[1:] != shape.shape or len(found) < self.replicas:
                raise InputError(f"a checkpoint without {name} of shape {shape.shape}")
            rows = np.minimum(np.arange(len(replicas.seeds)), self.replicas - 1)
            return replicas.place(found[rows])

        return jax.tree_util.tree_map_with_path(placed, shapes)

    def __repr__(self) -> str:
        count = sum(leaf[0].size for leaf in jax.tree.leaves(self.params))
        return f"Model({self.name}, {self.replicas} replicas, {count:,} parameters each)"

    @cached_property
    def params(self) -> dict[str, Any]:
        return nnx.to_pure_dict(self.arrays[0])

    @property
    def arrays(self) -> tuple[Any, Any]:
        """Parameters that are tested, and buffers, [replicas, ...]."""
        return jax.tree.map(
            lambda array: np.asarray(array)[: self.replicas], (self._tested, self._buffers)
        )

    def module(self, replica: int = 0) -> Any:
        """Returns the Flax module of a replica, in evaluation mode."""
        one_replica = jax.tree.map(lambda array: array[replica], self.arrays)
        return self._predictor.model.evaluated(*one_replica)

    def rules(self) -> np.ndarray | None:
        """Returns the probabilities of the rules `first, second -> head` that the model has
        learned, [replicas, Q, Q, Q], or None if it learns none. The Q types are the predicates, or
        the relations in a run without `share_genders`."""
        reasoners = [_reasoner(self.module(replica)) for replica in range(self.replicas)]
        is_learned = jax.tree.leaves(nnx.state(reasoners[0], nnx.Param))
        if not is_learned or not hasattr(type(reasoners[0]), "rules"):
            return None
        return np.stack([np.asarray(reasoner.rules()) for reasoner in reasoners])

    def save(self, path: str | Path) -> None:
        """Writes the parameters as safetensors, named by their path: "readout.out.kernel"."""
        from safetensors.numpy import save

        flat = {".".join(map(str, k)): v for k, v in flatten_dict(self.params).items()}
        arrays = {name: np.ascontiguousarray(array) for name, array in flat.items()}
        with atomic_write(Path(path)) as temporary:
            temporary.write_bytes(save(arrays))

    def predict(self, data: Any) -> Predictions:
        """Predicts the relation of every story.

        Args:
          data: a `Dataset`, its records, its path, or rows in memory. Of a data set with test
            stories, these; otherwise all of its stories. A target is not needed.
        Returns:
          `relation` [replicas, S] and `probabilities` [replicas, S, relations].
        Raises:
          InputError: the model cannot read the stories, or one has more people than it has vectors
            for.
        """
        stories = self.read(stories_of(data, self.algebra)[1])
        parameters = self._tested, self._last, self._buffers
        return predict_all(self.name, self._predictor, *parameters, stories)[self.name]

    def evaluate(self, data: Any) -> Evaluation:
        """Tests the model on stories with targets, see `predict`, next to the baselines, except
        that of induced rules: these would be from other stories than the model has seen."""
        name, test = stories_of(data, self.algebra)
        dataset, every = Dataset(name, None, test), np.arange(len(test))
        given = MODELS[self.name].given(self.settings, started=self._started)
        submission = Submission(self.name, self.predict(test), every, given=given)
        return evaluate(dataset, [submission])

    def read(self, records: Records) -> StoryArrays:
        """Stories as the model reads them."""
        self.check_algebra(records)
        check_input(self.name, self._predictor.model.spec.kind, records)
        vocabulary = self.vocabulary
        if self._predictor.model.spec.kind in GRAPHS and not self._has_entity_vectors:
            pool = max(vocabulary.entities, entity_pool(records))
            vocabulary = Vocabulary(vocabulary.words, pool)
        try:
            stories = build_arrays(records, vocabulary, TEST_SEED)
            return self._encode(records, stories) if self._encode else stories
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from None

    def check_algebra(self, records: Records) -> None:
        """Raises InputError if stories have other relations than the model."""
        own, other = self.algebra, records.algebra
        if other != own:
            name = other.name if other.name != own.name else "another algebra of this name"
            raise InputError(
                f"{self.name}: predicts relations of {own.name}, expected stories with these and "
                f"not of {name}"
            )

    @cached_property
    def _has_entity_vectors(self) -> bool:
        """Whether the size of an array depends on the number of entities."""
        definition = self._predictor.model
        more = replace(definition.sizes, entities=definition.sizes.entities + 1)
        one, other = (
            jax.tree.leaves(jax.eval_shape(each.init, jax.random.key(0)))
            for each in (definition, replace(definition, sizes=more))
        )
        return [leaf.shape for leaf in one] != [leaf.shape for leaf in other]

    def answer(
        self,
        story: str = "",
        query: Sequence[str] | str = (),
        *,
        facts: Iterable[Sequence[str]] | str | None = None,
        names: Sequence[str] | None = None,
    ) -> Answer:
        """Answers what the second person of the query is to the first.

        Args:
          story: text with names in [brackets], for models that read text. Without brackets and
            `names`, its people are those of the query and the facts alone.
          query: two names, or "Ann, Cy".
          facts: triples such as ("Ann", "son", "Bob"), Bob is the son of Ann, for models that read
            graphs: rows, an array, a data frame, or their text.
          names: all people of the story, if their names are not in brackets.
        Raises:
          InputError: the story, the facts or the query cannot be read, or not by this model.
        """
        rows: Any = facts
        if is_frame(rows):
            rows = rows.to_numpy()
        story, query, facts = map(plain, (story, query, rows))
        if not (story or facts) or not query:
            raise InputError("answer: expected a story or facts, and a query of two names")
        row = {"story": story or None, "query": query, "facts": facts, "names": names}
        given = {name: cell for name, cell in row.items() if cell is not None}
        _, records = stories_of({"story": [given]}, self.algebra)
        probabilities = self.predict(records).probabilities
        assert probabilities is not None
        mean = probabilities[:, 0].mean(axis=0)
        order = np.argsort(-mean, kind="stable")
        relations = {self.algebra.relations[r]: float(mean[r]) for r in order}
        explained = self._explain(records, int(order[0]))
        return Answer(records.story(0), relations, *explained, self.algebra)

    def _explain(self, records: Records, predicted: int) -> tuple[Any, Any, Any]:
        """Facts that the first replica reads, and its proof of a relation, as for `Answer`."""
        model, told, (x, y) = self.module(), records.story(0), records.query[0].tolist()
        people, read = told.people, None
        relation = np.zeros((len(people),) * 2, int)
        chance = np.zeros(relation.shape)
        if has_method(model, "answer"):
            kind, stories = self._predictor.model.spec.kind, self.read(records)
            ((_, graph),) = per_story(type(model).read, model, kind, stories)
            graph = graph[: len(people), : len(people)]
            relation, chance = graph.argmax(axis=-1), graph.max(axis=-1).astype(float)
            np.fill_diagonal(chance, 0)
            chance[x, y] = chance[y, x] = 0  # the reasoner does not see the query pair
            read = [
                (people[a], records.relation_name(relation[a, b]), people[b], float(chance[a, b]))
                for a, b in np.argwhere(chance > THRESHOLD)
            ]
        else:
            for a, name, b in told.facts:
                pair = people.index(a), people.index(b)
                relation[pair], chance[pair] = self.algebra.index[name], 1.0
        proof, reasoner = None, _reasoner(model)
        if hasattr(type(reasoner), "rules"):
            heads = rule_heads(gendered(np.asarray(reasoner.rules()), self.algebra))
            proof = prove_extracted(relation, chance, heads, Fact(x, predicted, y))
        if proof is None:
            return read, None, None

        def say(fact: Fact) -> str:
            return self.algebra.sentence(
                people[fact.x], self.algebra.relations[fact.relation], people[fact.y]
            )

        return read, in_sentences(proof.steps, say), proof.probability


def _reasoner(module: Any) -> Any:
    """The part of a model that has rules, if any."""
    return getattr(module, "reasoner", module)


def stories_of(data: Any, algebra: Algebra) -> tuple[str, Records]:
    """Returns the name and the test stories of data in any form or, if it has none, all of its
    stories."""
    if isinstance(data, Records):
        return "stories", data
    if not isinstance(data, Dataset):
        if isinstance(data, str | Path) and Path(data).exists():
            algebra = algebra_of(Path(data)) or algebra  # another one is refused by `Model.read`
        data = load(data, algebra)
    split = "train" if data.test is None else "test"
    return data.name, data.records(split, answered=False)


def run_folders(folder: Path) -> list[Path]:
    """Returns the folders of the finished runs of an experiment, or the folder itself if it is that
    of a run."""
    if (folder / "config.json").exists():
        return [folder]
    levels = ("*", "*/*", "*/*/*")  # MODEL, DATA/MODEL, DATA/SEED/MODEL
    found = [path.parent for level in levels for path in folder.glob(f"{level}/{SUMMARY}")]
    if not found:
        raise InputError(f"{folder}: no config.json, expected the folder of a finished run")
    return sorted(found)


def load_model(folder: str | Path, point: str = "") -> Model:
    """Loads the model of a finished run, with all of its replicas.

    Args:
      folder: of the run, such as runs/first/gat, or of an experiment with one finished run.
      point: of a sweep, such as "learning_rate=.001"; by default the one that dev loss chose.
    Raises:
      InputError: the folder holds no finished run or several, or one of its files is damaged.
    """
    if not isinstance(folder, str | Path):
        raise InputError(f"folder: {type(folder).__name__}, expected text or a pathlib.Path")
    experiment = Path(folder)
    folder, *others = run_folders(experiment)
    if others:
        runs = ", ".join(str(run.relative_to(experiment)) for run in (folder, *others))
        raise InputError(f"{experiment}: an experiment, expected one of its runs: {runs}")
    if not (folder / SUMMARY).exists():
        raise InputError(f"{folder}: no {SUMMARY}, expected the folder of a finished run")
    config = read_json(folder / "config.json", {"model": str, "seed": int})
    summary = read_json(folder / SUMMARY, {"settings": {"train": {"replicas": int}}})
    name, settings = config["model"], summary["settings"]
    if name not in MODELS:
        raise InputError(
            f'{folder}: a run of model "{name}", which is not registered; expected '
            "clutrr_jax.register before, or --model-file FILE of a command"
        )
    found = Checkpoints(folder / "checkpoints").newest()
    if found is None:
        raise InputError(f"{folder / 'checkpoints'}: no checkpoint, expected that of the run")
    vocabulary = read_vocabulary(folder / VOCABULARY)
    first, replicas = 0, settings["train"]["replicas"]
    if point or "sweep" in summary:
        sweep = summary.get("sweep", {"points": []})
        points = {one["name"]: one for one in sweep["points"]}
        chosen = f"{name} ({point})" if point else sweep["chosen"]
        one_of("point", chosen, list(points))
        first = list(points).index(chosen) * replicas
        settings = with_values(settings, points[chosen]["settings"])
    try:
        algebra = algebra_of(folder) or DEFAULT
        started = "start" in config
        arrays = {path: array[first : first + replicas] for path, array in found[1].items()}
        return Model(name, settings, vocabulary, algebra, config["seed"], arrays, started)
    except (InputError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder}: cannot be loaded as {name} ({error})") from None
