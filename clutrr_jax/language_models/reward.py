"""Reward of the answers of a language model, to train it on prompts of this project."""

from collections.abc import Sequence
from typing import Any

from clutrr_jax.language_models.harness_logs import prompt_text
from clutrr_jax.language_models.named_answers import stated_relation
from generator.errors import InputError, one_of
from generator.relations.algebras import DEFAULT, NAMES, find_algebra


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
      algebra, choices: name and relations of each, by default those of kinship. An algebra of the
        package needs no choices.
      strict: whether the relation must follow a marker, or stand alone in the last line or at the
        beginning, as in the rows "NAME (strict)" of scores.
      **others: other columns, which are ignored.
    Raises:
      InputError: a column has another length, or a target is none of the relations.
    """
    optional = {"algebra": algebra, "choices": choices}
    columns = {"target": target, "query": query, "names": names} | {
        name: column for name, column in optional.items() if column is not None
    }
    for name, column in columns.items():
        if isinstance(column, str) or len(column) != len(completions):
            count = "a text" if isinstance(column, str) else f"{len(column)}"
            raise InputError(
                f"reward: {len(completions)} completions and {count} in the column "
                f'"{name}", expected one for each'
            )
    rows = [_row(dict(zip(columns, cells, strict=True)))
            for cells in zip(*columns.values(), strict=True)]  # fmt: skip
    return [
        float(stated_relation(_text(completion), row, strict) == row["target"])
        for completion, row in zip(completions, rows, strict=True)
    ]


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """The cells of a completion, with an algebra and the names of its relations."""
    row["algebra"] = algebra = row.get("algebra") or DEFAULT.name
    if row.get("choices") is None:
        one_of("reward: without choices, algebra", algebra, NAMES)
        row["choices"] = find_algebra(algebra).relations
    elif algebra == DEFAULT.name and not {*row["choices"]} <= {*DEFAULT.relations}:
        raise InputError("reward: choices of other relations, expected their column algebra too")
    one_of("reward: target", row["target"], row["choices"])
    return row


def _text(completion: Any) -> str:
    """The text of a completion, which may be missing or the messages of a chat."""
    if isinstance(completion, str):
        return completion
    if isinstance(completion, list | tuple):
        return prompt_text(list(completion[-1:]))
    if completion is None:
        return ""
    raise InputError(f"reward: completion {completion!r}, expected a text or a list of messages")
