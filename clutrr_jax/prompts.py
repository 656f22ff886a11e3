"""Writes test stories as prompts for a language model: `python -m clutrr_jax.prompts`.

The output has one JSON object per test story: id, task, k, prompt, target. Add the model's output
as `prediction` and pass the file to `python -m clutrr_jax.score`. The styles:

  zero-shot         the question and the possible answers
  few-shot          N solved examples from the training rows first
  chain-of-thought  the examples with their proofs as sentences; with --shots 0 the prompt only
                    asks for step-by-step reasoning

The seed selects the same examples in every style. Examples are training rows whose label follows
from the stated facts by the benchmark's 16 rules.
"""

import json
from pathlib import Path

from clutrr_jax.command import CommandParser, run
from clutrr_jax.data.dataset import load
from clutrr_jax.data.story_ids import story_ids
from clutrr_jax.language_models.prompts import examples, prompts
from generator.errors import InputError, at, check_range
from generator.files import write_text

DEFAULT_SHOTS = 4
# Style -> minimum and maximum number of examples.
STYLES = {"zero-shot": (0, 0), "few-shot": (1, 1000), "chain-of-thought": (0, 1000)}


def main(arguments: list[str]) -> None:
    """Writes the prompts of all test stories of a data set."""
    parser = CommandParser("prompts", __doc__)
    parser.add_argument("--style", required=True, choices=list(STYLES))
    parser.add_argument("--shots", type=int, metavar="N",
                        help=f"number of examples [{DEFAULT_SHOTS}; zero-shot: 0]")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="N",
                        help="random seed for choosing examples [0]")  # fmt: skip
    parser.add_argument("--out", required=True, type=Path, metavar="FILE",
                        help="output file, .jsonl")  # fmt: skip
    options = parser.parse_args(arguments)
    least, most = STYLES[options.style]
    shots = min(DEFAULT_SHOTS, most) if options.shots is None else options.shots
    check_range(f"--style {options.style}: --shots", shots, least, most)
    check_range("--seed", options.seed, 0)
    data = load(options.data)
    if data.test is None or (shots and data.train is None):
        raise InputError(
            f"{at(options.data)}: expected test rows" + (" and training rows" if shots else "")
        )
    steps = options.style == "chain-of-thought"
    solved = examples(data.train, shots, options.seed, steps) if data.train and shots else []
    ids = story_ids(data.test)
    lines = [json.dumps(prompt) for prompt in prompts(data.test, ids, solved, steps)]
    write_text(options.out, "\n".join(lines) + "\n")


if __name__ == "__main__":
    run(main)
