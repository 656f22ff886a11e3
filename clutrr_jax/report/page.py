"""The page `report.html`: one file that needs no other file and no network.

`template/` holds the style, the body and the scripts of the page. The scripts show one JSON object:
the results and, for each data set that is shown, the test stories column by column and all
predictions. A list of relations is written as a string with one letter per relation: "a" is
relation 0, the letter after those of all relations stands for no relation, and "-" for no answer.
"""

import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import pairwise
from string import Template
from typing import Any

import numpy as np

from clutrr_jax.data.records import Records, tasks
from clutrr_jax.data.vocabulary import sentences
from clutrr_jax.evaluation.predictions import UNMAPPED
from clutrr_jax.experiment import noise_name, run_name
from clutrr_jax.report.accuracy import (
    MARK,
    accuracy_table,
    further_metrics,
    label_tests,
    with_interval,
)
from clutrr_jax.report.export import latex_paired, latex_table
from clutrr_jax.report.graphs import FACT_KINDS, extracted_graphs, label_proof
from clutrr_jax.report.outputs import NOT_ASKED, Outputs, Shown
from clutrr_jax.report.paired import PAIRED_LEGEND, paired_table
from clutrr_jax.report.results import BESIDE
from clutrr_jax.report.tables import (
    EXTRACTION_LEGEND,
    extraction_table,
    legend,
    markdown_table,
    settings_table,
    sources,
    summary,
    title,
)
from generator.files import csv_text
from generator.relations.algebra import Algebra

MAX_STORIES = 1000  # of each test on the page
# Scripts of the page, in the order of their definitions.
SCRIPTS = (
    "common.js", "chart.js", "accuracy.js", "set.js", "training.js", "groups.js", "graph.js",
    "stories.js", "extraction.js", "page.js",
)  # fmt: skip


def render(content: dict[str, Any]) -> str:
    """Returns the HTML of a page with this content. No text in it can become markup."""
    template = files("clutrr_jax.report") / "template"

    def read(name: str) -> str:
        return (template / name).read_text(encoding="utf-8")

    return Template(read("page.html")).substitute(
        title=html.escape(content["title"]),
        style=read("page.css"),
        script="\n".join(map(read, SCRIPTS)),
        data=json.dumps(content, separators=(",", ":")).replace("<", "\\u003c"),
    )


def content(results: dict[str, Any], shown: Sequence[Shown]) -> dict[str, Any]:
    """Returns everything that the scripts of the page show."""
    return {
        **{name: results[name] for name in ("columns", "rows", "claims", "runs")},
        "paired": _paired(results["compared"]),
        "pairedLegend": PAIRED_LEGEND,
        # Baselines that use rules are often close to 1.00, and ensembles to their model.
        "hidden": ["given rules", "induced rules"],
        "hiddenKinds": BESIDE,
        "title": title(results),
        "task": _task([one.data.test.algebra for one in shown]),
        "headline": results["headline"],
        "summary": summary(results),
        "mark": MARK,
        "sources": sources(results),
        "tables": [_table(results, "accuracy", legend(results)),
                   *(_table(results, name, meaning)
                     for name, meaning in further_metrics(results).items())],
        "settings": settings_table(results),
        "factKinds": FACT_KINDS,
        "extractionLegend": EXTRACTION_LEGEND,
        "sets": [set_content(results, one) for one in shown],
    }  # fmt: skip


def _table(results: dict[str, Any], metric: str, about: str) -> dict[str, Any]:
    """The table of a metric: texts of its cells, what each line is, and copies."""
    table = accuracy_table(results, cell=with_interval, metric=metric)
    header, *lines = table.texts()
    return {
        "metric": metric,
        "about": about,
        "columns": header,
        "lines": [
            {"cells": cells, "kind": line.kind, "part": line.is_part}
            for cells, line in zip(lines, table.lines, strict=True)
        ],
        "copies": _copies(table.texts(), latex_table(results, metric)),
    }


def _copies(table: list[list[str]], latex: str) -> dict[str, str]:
    """The forms in which a table is copied."""
    return {"LaTeX": latex, "Markdown": "\n".join(markdown_table(table)), "CSV": csv_text(table)}


def _paired(compared: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The table of the paired tests of each model, from its side, and its copies."""
    found = {}
    for model in dict.fromkeys(m for pair in compared if pair["tasks"] for m in pair["models"]):
        table = paired_table(compared, model)
        found[model] = {"table": table, "copies": _copies(table, latex_paired(table))}
    return found


def _task(algebras: Sequence[Algebra]) -> str:
    """Describes what the models of a page learn."""
    names = dict.fromkeys(a.name for a in algebras if not a.is_kinship)
    if not names:
        return (
            "Task (CLUTRR): given a short story about a family, predict the relation between two "
            "of its people, the query pair. Clause length k is the number of facts that have to be "
            "combined."
        )
    return (
        f"Task ({', '.join(names)}): given facts about pairs of elements, predict the relation of "
        "the query pair. b is the number of paths between the pair, k is their length in facts."
    )


def set_content(results: dict[str, Any], shown: Shown) -> dict[str, Any]:
    """Returns the first MAX_STORIES stories of each test of a data set, in the order of the tests,
    and the outputs of its models."""
    dataset, data, truth, outputs = shown
    rows_of = dict(tasks(data.test))
    order = np.concatenate([rows[:MAX_STORIES] for rows in rows_of.values()])
    over_words = any(
        (o.attention and o.attention.over == "words") or (o.extraction and o.extraction.word_fact)
        for o in outputs.values()
    )
    algebra, view = data.test.algebra, data.test.algebra.coarse
    tests, noise_types = [], {}
    for name, label in zip(rows_of, label_tests(list(rows_of)), strict=True):
        t, _, k = name.partition(".")
        noise = int(t.removeprefix("b"))
        noise_types[str(noise)] = noise_name(t)
        tests.append({"name": name, "label": label, "noise": noise, "k": int(k)})
    runs = {model: run_name(dataset, model) for model in outputs}
    return {
        "name": dataset,
        "title": data.name,
        "shown": MAX_STORIES if max(map(len, rows_of.values())) > MAX_STORIES else None,
        "noiseTypes": noise_types,
        "relations": algebra.relations,
        "isKinship": algebra.is_kinship,
        "ofEitherGender": [
            view.in_words(algebra.relations, p, view.relation.shape[1])
            for p in range(len(view.relation))
        ],
        "relationOrder": view.relation.ravel().tolist(),  # similar relations next to each other
        "generations": [view.levels[p] for p in view.predicate],
        "tests": tests,
        "models": {model: _model(output, data.test, order) for model, output in outputs.items()},
        "stories": _stories(data.test.select(order), over_words)
        | {"possibleAnswers": truth.possible_answers[order].tolist()},
        **{
            what: {
                model: extraction_table(results[what][run])
                for model, run in runs.items()
                if run in results[what]
            }
            for what in ("extraction", "wordings")
        },
    }


def _model(output: Outputs, test: Records, order: np.ndarray) -> dict[str, Any]:
    """Predictions of a model for stories, attention as one digit for each fact or word, where 9 is
    the largest weight in the story, and extracted graphs."""
    predicted = output.predictions.relation
    content: dict[str, Any] = {
        "predictions": [_letters(replica[order], test.unstated) for replica in predicted]
    }
    if output.attention:
        content["attentionOver"] = output.attention.over
        content["attention"] = [
            "".join(map(str, np.rint(9 * w / max(w.max(), 1e-9)).astype(int)))
            for w in (output.attention.weights[story] for story in order)
        ]
    if output.curves:
        content["curves"] = output.curves
    if output.extraction:
        content |= extracted_graphs(output.extraction, test, order, predicted[0])
    return content


def _stories(test: Records, over_words: bool) -> dict[str, Any]:
    """The test stories, column by column. With `over_words`, also the first character of each word
    and the first word of each sentence, to show attention or the facts that they state."""
    test_index = np.zeros(len(test), int)
    for i, (_, rows) in enumerate(tasks(test)):
        test_index[rows] = i
    facts = np.stack([test.senders, test.relations, test.receivers], axis=1)
    people = list(pairwise(test.node_start.tolist()))
    edges = list(pairwise(test.edge_start.tolist()))
    view = test.algebra.coarse
    predicates = np.array([*(view.algebra.relations[p] for p in view.predicate), "not stated"])
    clauses = [
        ", ".join(predicates[test.relations[start : min(start + k, end)]])
        for (start, end), k in zip(edges, test.clause_length, strict=True)
    ]
    by_sentence = [sentences(story) for story in test.stories if over_words]
    return {
        "text": list(test.stories),
        "words": [[start for words in story for start, _ in words] for story in by_sentence],
        "sentences": [np.cumsum([0, *map(len, story[:-1])]).tolist() for story in by_sentence],
        "names": [list(test.names[a:b]) for a, b in people],
        "genders": ["".join(map(str, test.genders[a:b])) for a, b in people],
        "facts": [facts[a:b].tolist() for a, b in edges],
        "query": test.query.tolist(),
        "target": _letters(test.target, test.unstated),
        "test": test_index.tolist(),
        "clause": clauses,
        "proof": [label_proof(test, story) for story in range(len(test))],
    }


def _letters(relations: np.ndarray, unstated: int) -> str:
    letters = {NOT_ASKED: "-", UNMAPPED: chr(ord("a") + unstated)}
    return "".join(letters.get(r, chr(ord("a") + r)) for r in relations.tolist())
