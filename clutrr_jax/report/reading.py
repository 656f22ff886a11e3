"""What the page of a run shows of the graph that a model extracts from each story, as JSON objects:
its facts beside the stated ones, and the proof of the model's answer from them."""

from typing import Any

import numpy as np

from clutrr_jax.data.records import Records
from clutrr_jax.evaluation.extraction import (
    RIGHT,
    SURE,
    UNJUDGED,
    Extraction,
    compare,
    extracted,
    judged,
)
from clutrr_jax.evaluation.proofs import Read, heads_of, prove_likeliest
from clutrr_jax.report.results import extraction_table

# What a fact of the page is; those of `clutrr_jax.extraction`, and one that is stated but not
# extracted.
KINDS = ("right", "follows", "wrong", "unjudged", "missing")
MISSING = KINDS.index("missing")


def of_model(extraction: Extraction, test: Records, best: np.ndarray, order: np.ndarray) -> dict:
    """The extracted graph of each story, and what proves the model's answer.

    Args:
      extraction: of the model.
      test: the test stories.
      best: the answer to each, [S].
      order: the stories in the order of the page.

    Returns:
      "read": of each story its facts, each x, relation, y, number in KINDS and chance in per cent:
      those that are extracted, then the stated ones that are not, then others on which the proof
      rests. "proofs": of each story the steps as x, relation, y, and the numbers of the two that it
      rests on, facts and then steps; None where the answer does not follow. "proofChance": in per
      cent. "proofs" is None if there are no rules, and so is "proofChance".
    """
    heads = None if extraction.rules is None else heads_of(extraction.rules)
    chances, verdicts = extracted(extraction, test.query), judged(test)
    read: list[Any] = []
    proofs: list[Any] = []
    percents: list[Any] = []
    for story in order:
        relation, chance, verdict = extraction.relation[story], chances[story], verdicts[story]
        told: dict[Read, list[int]] = {}

        def tell(
            x: int, r: int, y: int, told=told, relation=relation, chance=chance, verdict=verdict
        ) -> None:
            is_likeliest, kind = relation[x, y] == r, int(verdict[x, y, r])
            percent = round(100 * float(chance[x, y])) if is_likeliest else 0
            sure = is_likeliest and chance[x, y] > SURE
            kind = MISSING if kind == RIGHT and not sure else kind
            told.setdefault((x, r, y), [x, r, y, kind, percent])

        for x, y in np.argwhere(chance > SURE).tolist():
            tell(x, int(relation[x, y]), y)
        for x, y, r in np.argwhere(verdict == RIGHT).tolist():
            tell(x, r, y)
        steps: list[list[int]] | None = None
        if heads is not None:
            x, y = map(int, test.query[story])
            proof = prove_likeliest(relation, chance, heads, (x, int(best[story]), y))
            if proof is not None:
                derived = {head: place for place, (_, _, head) in enumerate(proof.steps)}
                for first, second, _ in proof.steps:
                    for fact in (first, second):
                        if fact not in derived:
                            tell(*fact)
                number = {fact: place for place, fact in enumerate(told)}
                number |= {head: len(told) + place for head, place in derived.items()}
                steps = [[*head, number[a], number[b]] for a, b, head in proof.steps]
            percents.append(None if proof is None else round(100 * proof.chance, 1))
        proofs.append(steps)
        read.append([number for fact in told.values() for number in fact])
    if heads is None:
        return {"read": read, "proofs": None, "proofChance": None}
    return {"read": read, "proofs": proofs, "proofChance": percents}


def tables(extraction: dict[str, Extraction | None], test: Records) -> dict[str, list[list[str]]]:
    """Precision and recall of each model that extracts a graph."""
    return {
        model: extraction_table(compare(graph, test))
        for model, graph in extraction.items()
        if graph
    }


assert KINDS[UNJUDGED] == "unjudged"
