"""The report page: one HTML file with everything in it that a browser needs, and no network.

The page's parts stand in `template/`. What they draw is one JSON object; of a run: results, the
test stories column by column, and every answer as one letter (`a` is relation 0). What that of a
grid holds is said in `experiments.grid_report`.
"""

import base64
import hashlib
import html
import json
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.data.records import UNSTATED, Records, tasks
from clutrr_jax.data.vocabulary import spans
from clutrr_jax.evaluation.attention import Attention, read_attention
from clutrr_jax.evaluation.extraction import Extraction, read_extracted
from clutrr_jax.evaluation.metrics import Predictions, ceilings, read_predictions
from clutrr_jax.evaluation.proofs import Fact, prove
from clutrr_jax.report import reading
from clutrr_jax.report.results import EXTRACTION, column_names, table
from generator.config import TASKS
from generator.files import write_text
from generator.kinship import (
    INVERSE,
    NUM_PREDICATES,
    PREDICATE_OF,
    PREDICATES,
    RELATION_OF,
    RELATIONS,
    RULE_TABLE,
)

# The scripts of each kind of page, which has a body of the same name.
SCRIPTS = {
    "run": (
        "common.js", "data.js", "curves.js", "run_curves.js", "tables.js", "graph.js", "reading.js",
        "stories.js", "main.js",
    ),
    "grid": ("common.js", "curves.js", "grid.js"),
}  # fmt: skip


def generations() -> np.ndarray:
    """How many generations Y stands below X, for each relation, [relations]: the one solution in
    which the rules add up, inverses cancel, and a child (the first predicate) is one down."""
    equations = np.zeros((len(RULE_TABLE) + NUM_PREDICATES + 1, NUM_PREDICATES))
    for row, (first, second, head) in enumerate(RULE_TABLE):
        np.add.at(equations[row], [first, second], 1)
        equations[row, head] -= 1
    for predicate, inverse in enumerate(INVERSE):
        np.add.at(equations[len(RULE_TABLE) + predicate], [predicate, inverse], 1)
    equations[-1, 0] = 1
    sums = np.zeros(len(equations))
    sums[-1] = 1
    return np.linalg.lstsq(equations, sums)[0].round().astype(int)[PREDICATE_OF]


def _letters(relations: np.ndarray) -> str:
    return (relations + ord("a")).astype(np.uint8).tobytes().decode("ascii")


def _spans(values: np.ndarray, start: np.ndarray) -> list[np.ndarray]:
    """The values of each story."""
    return np.split(values, start[1:-1])


def _proof(test: Records, story: int) -> list[list[int]] | None:
    """Each step as x, relation, y, and the numbers of the two that it rests on: facts in the order
    of the row, then steps. None where the label does not follow."""
    steps = prove(test, story)
    if steps is None:
        return None
    edges = slice(test.edge_start[story], test.edge_start[story + 1])
    relations = test.relations[edges]
    number: dict[Fact, int] = {}
    for fact, (x, y, r) in enumerate(
        zip(test.senders[edges].tolist(), test.receivers[edges].tolist(), relations, strict=True)
    ):
        if r != UNSTATED:
            number.setdefault(Fact(x, int(PREDICATE_OF[r]), y), fact)
    genders = test.genders[test.node_start[story] :]
    told = []
    for step in steps:
        x, predicate, y = step.head
        relation = int(RELATION_OF[predicate, genders[y]])
        told.append([x, relation, y, number[step.first], number[step.second]])
        number[step.head] = len(relations) + len(told) - 1
    return told


def _clauses(test: Records) -> list[str]:
    """The predicates of the first k facts of each story."""
    names = np.array([*(PREDICATES[p] for p in PREDICATE_OF), "not stated"])
    return [
        ", ".join(names[relations[:k]])
        for relations, k in zip(
            _spans(test.relations, test.edge_start), test.clause_length, strict=True
        )
    ]


def _stories(test: Records, clauses: list[str]) -> dict[str, Any]:
    """The test stories, column by column.

    Args:
      clauses: all that there are.
    """
    test_of = np.zeros(len(test), int)
    for number, (_, rows) in enumerate(tasks(test)):
        test_of[rows] = number
    facts = np.stack([test.senders, test.relations, test.receivers], axis=1)
    number_of = {clause: number for number, clause in enumerate(clauses)}
    bounds = test.node_start.tolist()
    return {
        "text": list(test.stories),
        "names": [list(test.names[a:b]) for a, b in pairwise(bounds)],
        "women": ["".join(map(str, part)) for part in _spans(test.genders, test.node_start)],
        "facts": [part.ravel().tolist() for part in _spans(facts, test.edge_start)],
        "query": test.query.tolist(),
        "target": _letters(test.target),
        "test": test_of.tolist(),
        "clause": [number_of[clause] for clause in _clauses(test)],
        "readings": np.rint(1 / ceilings(test)).astype(int).tolist(),
        "proof": [_proof(test, story) for story in range(len(test))],
    }


def _model(predictions: Predictions, attention: Attention | None, order: np.ndarray) -> dict:
    """What a model says of each story in the given order, and what it attends to: a digit for each
    fact or word, 9 for the most in the story."""
    told: dict[str, Any] = {"predictions": [_letters(r) for r in predictions.best[:, order]]}
    if attention:
        told["over"] = attention.over
        told["attention"] = [
            "".join(map(str, np.rint(9 * w / max(w.max(), 1e-9)).astype(int)))
            for w in (attention.weights[story] for story in order)
        ]
    return told


def order_of(test: Records) -> np.ndarray:
    """The stories test by test, [S]."""
    return np.concatenate([rows for _, rows in tasks(test)])


def content(
    results: dict[str, Any],
    test: Records,
    predictions: dict[str, Predictions],
    attention: dict[str, Attention | None],
    extraction: dict[str, Extraction | None],
) -> dict[str, Any]:
    """All that the page draws, as JSON objects.

    Args:
      results: of `results.collect`.
      test: the test stories.
      predictions: of each model, on these.
      attention: of each model that has it, on these.
      extraction: of each model that extracts a graph, of these.
    """
    read = {
        model: reading.of_model(graph, test, predictions[model].best[0], order_of(test))
        for model, graph in extraction.items()
        if graph
    }
    extractions = reading.tables(extraction, test)
    order = order_of(test)
    test = test.select(order)
    data = results["data"]
    columns = column_names(results["rows"])
    clauses = sorted(set(_clauses(test)))
    # Where each word starts, if there is something to show of the words.
    words = {}
    if any(a and a.over == "words" for a in attention.values()):
        words["words"] = [[start for start, _ in spans(story)] for story in test.stories]
    kinds = {int(name.split(".")[0]) for name in columns}
    return {
        "title": f"{results['config']['name']} on {data['name']}",
        "facts": f"{data['train_rows']:,} train and {data['test_rows']:,} test stories; "
        f"{results['device']}; training took {results['wall_seconds']:.0f} s.",
        "relations": RELATIONS,
        "order": RELATION_OF.ravel().tolist(),
        "generation": generations().tolist(),
        "noise": {str(t): TASKS.get(t, f"task {t}") for t in kinds},
        "oneNoise": len(kinds) == 1,
        "tests": [
            {"name": name, "label": label, "noise": t, "k": k}
            for name, label in columns.items()
            for t, k in [map(int, name.split("."))]
        ],
        "rows": results["rows"],
        "table": table(results),
        "models": {
            model: _model(said, attention[model], order) | read.get(model, {})
            for model, said in predictions.items()
        },
        "kinds": reading.KINDS,
        "extraction": extractions,
        "extractionLegend": EXTRACTION,
        "clauses": clauses,
        "stories": _stories(test, clauses) | words,
    }


def _hash(text: str) -> str:
    """Of a style or a script that the page may run; it may run no others."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def render(kind: str, objects: dict[str, Any]) -> str:
    """The page of the given kind and content. No text of it can become markup.

    Args:
      kind: "run" or "grid".
      objects: what its scripts draw, with a "title".
    """
    template = files("clutrr_jax.report") / "template"
    style = (template / "page.css").read_text()
    scripts = "\n".join((template / name).read_text() for name in SCRIPTS[kind])
    script = f'"use strict";\n(() => {{\n{scripts}}})();\n'
    policy = f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src "
    parts = {
        "title": html.escape(objects["title"]),
        "policy": policy + _hash(script),
        "style": style,
        "body": (template / f"{kind}.html").read_text(),
        "script": script,
        "data": json.dumps(objects, separators=(",", ":")).replace("<", "\\u003c"),
    }
    pieces = (template / "page.html").read_text().split("@")
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def write(results: dict[str, Any], test: Records, folder: Path) -> None:
    """`report.html` of a run.

    Args:
      results: of `results.collect`.
      test: the test stories.
      folder: the run's; the predictions of its models are read from it.
    """
    models = {model: folder / model for model in results["models"]}
    predictions = {m: read_predictions(f / "predictions.csv", test) for m, f in models.items()}
    attention = {model: read_attention(f, test) for model, f in models.items()}
    extraction = {model: read_extracted(f, test) for model, f in models.items()}
    objects = content(results, test, predictions, attention, extraction)
    write_text(folder / "report.html", render("run", objects))
