"""Content of a report page by hand: two panels, two models, two baselines and two data sets.

The accuracies are those of the predictions, so that each part of the page can be checked against
another. One name in the first story of each test is markup.
"""

import re
from typing import Any

import numpy as np

from tests.report.conftest import EVIL

RELATIONS = ["son", "daughter", "father", "mother", "brother", "sister"]
KINDS = ["right", "follows", "wrong", "unjudged", "missing"]
NOISE = {1: "clean", 2: "supporting"}
TESTS = [(1, 2), (1, 3), (1, 4), (2, 3)]  # noise type and clause length
STORIES = 20  # per test
REPLICAS = {"gat": 3, "reader": 1}
WITH_ERRORS = STORIES  # the story whose extracted graph has errors, "1.3/1"
BASELINES = ("given rules", "majority label")
SOURCE = "Doe 2020, table 1"


def content() -> dict[str, Any]:
    """Returns the content of a grid with published values, which a test may change."""
    sets = [data_set("k23", 0, list(REPLICAS)), data_set("k234", 1, ["gat"])]
    rows = [row(sets[0], model, *test) for model in REPLICAS for test in TESTS]
    rows += [
        {"noise": NOISE[noise], "k": k, "model": name, "accuracy": value, "stderr": None,
         "low": value - 0.1, "high": value, "count": STORIES, "replicas": 1, "ceiling": 0.95,
         "published": None, "difference": None, "intervals_disjoint": None}
        for name, value in zip(BASELINES, (0.95, 0.2), strict=True) for noise, k in TESTS
    ]  # fmt: skip
    blank = dict.fromkeys(("stderr", "low", "high", "count", "ceiling", "published", "difference"))
    averages = [
        {"noise": "mean", "k": 3, "model": model, "accuracy": mean, "replicas": 3, **blank}
        for model in REPLICAS
        for mean in [np.mean([r["accuracy"] for r in rows if r["model"] == model and r["k"] == 3])]
    ]
    return {
        "title": "<b>test</b>", "task": "Task (CLUTRR).", "mark": "*",
        "summary": "Replica 2 of gat diverged.",
        "columns": ["noise", "k", "model"], "rows": rows, "averages": averages,
        "series": [{"name": name, "baseline": name in BASELINES, "shown": name != "given rules"}
                   for name in (*REPLICAS, *BASELINES)],
        "references": [reference("gat, published (Doe)", "gat", True, {2: 0.9, 3: 0.8, 4: 0.7}),
                       reference("other", "other", False, {2: 0.6})],
        "claims": {"Noise": {"supported": ["b > a"], "not supported": [EVIL], "undecided": ["c"]}},
        "sources": [f"gat: {SOURCE}"], "legend": "Accuracy with its standard error.",
        "table": table(rows), "copies": COPIES, "paired": PAIRED, "pairedLegend": "Differences.",
        "headline": "gat is best: .70 at k = 4.",
        "settings": [["model", "epochs", "other settings"], ["gat", "7", "heads 1"]],
        "runs": [{"name": f"{dataset}/{model}", "dataset": dataset, "model": model, "state": state}
                 | ({"error": EVIL} if state == "failed" else {})
                 for dataset, model, state in RUNS],
        "factKinds": KINDS, "extractionLegend": "Precision is a fraction.", "sets": sets,
    }  # fmt: skip


RUNS = [
    ("k23/0", "gat", "finished"), ("k23/1", "gat", "finished"), ("k23/0", "reader", "finished"),
    ("k234/0", "gat", "finished"), ("k234/0", "reader", "failed"), ("k234/1", "reader", "not run"),
]  # fmt: skip


def reference(name: str, series: str, shown: bool, means: dict[int, float]) -> dict[str, Any]:
    values = {x: {"mean": mean, "error": None} for x, mean in means.items()}
    return {"panel": "clean", "name": name, "series": series, "shown": shown, "source": SOURCE,
            "values": values}  # fmt: skip


def correct(of_set: dict[str, Any], model: str) -> np.ndarray:
    """Correct predictions, [R, S]."""
    letters = [list(replica) for replica in of_set["models"][model]["predictions"]]
    return np.array(letters) == np.array(list(of_set["stories"]["target"]))


def row(of_set: dict[str, Any], model: str, noise: int, k: int) -> dict[str, Any]:
    """Published values of the GAT are .8 at each k of the first panel."""
    stories = np.array(of_set["stories"]["test"]) == TESTS.index((noise, k))
    replicas = correct(of_set, model)[:, stories].mean(axis=1)
    mean, published = replicas.mean(), model == "gat" and noise == 1
    return {
        "noise": NOISE[noise], "k": k, "model": model, "accuracy": mean,
        "stderr": replicas.std(ddof=1) / 3**0.5 if len(replicas) > 1 else None,
        "low": mean - 0.1, "high": mean + 0.1, "count": STORIES, "replicas": len(replicas),
        "accuracies": replicas.tolist(), "ceiling": 0.95,
        "published": {"mean": 0.8, "error": 0.01} if published else None,
        "difference": mean - 0.8 if published else None,
        "intervals_disjoint": bool(abs(mean - 0.8) > 0.12) if published else None,
    }  # fmt: skip


def table(rows: list[dict[str, Any]]) -> list[list[str]]:
    """The GAT has a secondary row."""
    lines = [["model", *(f"{noise}.{k}" for noise, k in TESTS), "difference"]]
    for name in (*REPLICAS, *BASELINES):
        own = [r for r in rows if r["model"] == name]
        difference = {"gat": "-.12*", "reader": "+.02"}.get(name, "")
        lines.append([name, *(f"{r['accuracy']:.3f}" for r in own), difference])
        if name == "gat":
            lines.append(["  last epoch", *[".990 ±.01"] * len(TESTS), ""])
    return [*lines, ["ceiling", *[".95"] * len(TESTS), ""], ["stories", *["20"] * len(TESTS), ""]]


def data_set(name: str, seed: int, models: list[str]) -> dict[str, Any]:
    """Stories of random facts along the clause; two thirds of the predictions are the label."""
    rng = np.random.default_rng(seed)
    tests = [test for test in range(len(TESTS)) for _ in range(STORIES)]
    stories = [
        story(EVIL if i % STORIES == 0 else "Fay", *TESTS[test], rng)
        for i, test in enumerate(tests)
    ]
    target = rng.integers(len(RELATIONS), size=len(stories))
    for found, label in zip(stories, target, strict=True):
        found["proof"][-1][1] = int(label)
    columns = {field: [found[field] for found in stories] for field in stories[0]}
    columns["proof"][1] = None
    found_models: dict[str, dict[str, Any]] = {}
    for model in models:
        shape = (REPLICAS[model], len(stories))
        other = rng.integers(len(RELATIONS), size=shape)
        predicted = np.where(rng.random(shape) < 0.7, target, other)
        found_models[model] = {"predictions": [letters(replica) for replica in predicted]}
        found_models[model]["curves"] = CURVES[model]
        over = "facts" if model == "gat" else "words"
        found_models[model] |= {"attentionOver": over, "attention": [
            "9" + "".join(map(str, rng.integers(9, size=len(of_story) - 1)))
            for of_story in columns[over]
        ]}  # fmt: skip
    extraction = {}
    if "reader" in models:
        found_models["reader"] |= extracted(columns)
        extraction["reader"] = EXTRACTION
    return {
        "name": name, "title": f"stories of {name}",
        "noiseTypes": {str(noise): text for noise, text in NOISE.items()},
        "shown": None, "isKinship": True, "relations": RELATIONS,
        "ofEitherGender": [],
        "relationOrder": [2, 3, 0, 1, 4, 5], "generations": [1, 1, -1, -1, 0, 0],
        "tests": [{"name": f"{noise}.{k}", "label": f"{noise}.{k}", "noise": noise, "k": k}
                  for noise, k in TESTS],
        "models": found_models,
        "stories": columns | {"target": letters(target), "test": tests},
        "extraction": extraction,
        "wordings": {model: WORDINGS for model in extraction},
    }  # fmt: skip


def letters(relations: np.ndarray) -> str:
    return "".join(chr(ord("a") + relation) for relation in relations)


def story(name: str, noise: int, k: int, rng: np.random.Generator) -> dict[str, Any]:
    """A chain of k facts, and a fact about one more person if the noise type is not clean."""
    names = [name, "Ann", "Bob", "Cy", "Dan", "Eve"][: k + noise]
    relations = rng.integers(len(RELATIONS), size=len(names) - 1).tolist()
    pairs = [(i, i + 1) for i in range(k)] + [(1, k + 1)] * (noise - 1)
    facts = [[x, relation, y] for (x, y), relation in zip(pairs, relations, strict=True)]
    text = " ".join(f"[{names[y]}] is the {RELATIONS[r]} of [{names[x]}]." for x, r, y in facts)
    words = [match.start() for match in re.finditer(r"\[[^][]+\]|\w+|\.", text)]
    return {
        "text": text, "words": words, "sentences": list(range(0, len(words), 7)),
        "names": names, "genders": "01" * (len(names) // 2) + "0" * (len(names) % 2),
        "facts": facts, "query": [0, k], "possibleAnswers": 2 if noise > 1 else 1,
        "clause": ", ".join(RELATIONS[r] for r in relations[:k]),
        "proof": [[0, 0, i + 1, len(facts) + i - 2 if i > 1 else 0, i] for i in range(1, k)],
    }  # fmt: skip


def extracted(stories: dict[str, Any]) -> dict[str, Any]:
    """Graphs without errors, except for one story: a fact is missing, one follows, one is wrong.

    In that story, the first word states the first fact, the third one its inverse, and the last one
    a wrong fact. The first prediction has no proof, the other ones have one step.
    """
    graphs = [[[*fact, 0, 100] for fact in facts] for facts in stories["facts"]]
    words: list[list[list[int]]] = [[] for _ in graphs]
    (x, relation, y), *rest = stories["facts"][WITH_ERRORS]
    graphs[WITH_ERRORS] = [[x, relation, y, 4, 40], *([*fact, 0, 100] for fact in rest),
                           [y, 2, x, 1, 71], [2, 4, 0, 2, 51]]  # fmt: skip
    last = len(stories["words"][WITH_ERRORS]) - 1
    words[WITH_ERRORS] = [[0, x, relation, y, 0, 93], [2, y, 2, x, 1, 50], [last, 2, 4, 0, 2, 10]]
    return {"extracted": graphs, "wordFacts": words,
            "proofs": [None, *([[0, 0, 2, 0, 1]] for _ in graphs[1:])],
            "proofProbability": [None, *[40] * (len(graphs) - 1)]}  # fmt: skip


# The reader has a curve of its own length, and no loss at its last epoch.
CURVES = {
    "gat": [{"epoch": e, "loss": 3.4 / e, "dev accuracy": e / 10} for e in (1, 2, 3, 9)],
    "reader": [{"epoch": 1, "loss": 2.0, "dev accuracy": 0.2},
               {"epoch": 4, "loss": None, "dev accuracy": 0.4}],
}  # fmt: skip
COPIES = {"LaTeX": r"a & \textbf{b} \\", "Markdown": "| a | b |", "CSV": f"a,{EVIL}"}
PAIRED = {
    model: {
        "table": [
            ["model", "against", "1.2", "1.3"],
            [model, other, f"{a}.13 (.031)", f"{b}.25 (<.001)"],
        ],
        "copies": {form: f"{text} of {model}" for form, text in COPIES.items()},
    }
    for model, other, a, b in (("gat", "reader", "+", "-"), ("reader", "gat", "-", "+"))
}
EXTRACTION = [["facts", "stated", "recall"], ["all", "200", ".99"], ["k = 2", "40", "1.00"],
              ["k = 3", "60", ".98"]]  # fmt: skip
WORDINGS = [["facts", "in training", "missing"], ["wording of a training story", "yes", "10"],
            ["new wording", "no", "1"], ["[A] is the son of [B].", "no", "9"]]  # fmt: skip
