"""Reward of the answers of a language model, to train it on prompts of this project."""

from collections.abc import Sequence
from typing import Any

from clutrr_jax.language_models.harness_logs import prompt_text
from clutrr_jax.language_models.named_answers import stated_relation
from generator.errors import InputError
from generator.relations.kinship import KINSHIP, RELATIONS


def reward(
    completions: Sequence[str | Sequence[dict[str, Any]]],
    target: Sequence[str],
    query: Sequence[Sequence[str]],
    names: Sequence[Sequence[str]],
    *,
    algebra: Sequence[str] | None = None,
    choices: Sequence[Sequence[str]] | None = None,
    strict: bool = True,
    **others: Any,
) -> list[float]:
    """Returns 1.0 for each completion that states its target relation, else 0.0.

    A reward function of the GRPO trainer of TRL: arguments other than `completions` are columns of
    the train data, such as the keys of an exported prompt, with one value for each completion.

    Args:
      completions: texts, or lists of chat messages, of which the last one counts.
      target: the right relations.
      query: names of the two people of each question.
      names: all people of each story.
      algebra, choices: name and relations of each, by default those of kinship.
      strict: whether the relation must follow a marker, or stand alone in the last line or at the
        beginning, as in the rows "NAME (strict)" of scores.
      **others: other columns, which are ignored.
    Raises:
      InputError: a column has another length.
    """
    algebra = [KINSHIP.name] * len(completions) if algebra is None else algebra
    choices = [RELATIONS] * len(completions) if choices is None else choices
    columns = {"target": target, "query": query, "names": names, "algebra": algebra,
               "choices": choices}  # fmt: skip
    for name, column in columns.items():
        if len(column) != len(completions):
            raise InputError(
                f"reward: {len(completions)} completions and {len(column)} in the column "
                f'"{name}", expected one for each'
            )
    texts = [one if isinstance(one, str) else prompt_text(list(one[-1:])) for one in completions]
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return [
        float(stated_relation(text, row, strict) == row["target"])
        for text, row in zip(texts, rows, strict=True)
    ]
