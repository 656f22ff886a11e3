"""Exports test stories as prompts for a language model.

DIR/prompts.jsonl has one JSON object per test story: id, task, k, story, query, choices, prompt,
target, edges, the columns of the published data and, if the label follows from the stated facts,
proof. The formats:

  jsonl    nothing else: add the model's output to each line as `prediction`
  lm-eval  tasks clutrr_T.K and their group clutrr, for lm-evaluation-harness
  inspect  the task clutrr.py, for inspect_ai

Without --out the folder is in the cache folder, and its path is all that stdout has:

  lm_eval ... --tasks clutrr --include_path $(%(prog)s --format lm-eval --data DATA ...)

`python -m clutrr_jax.score` reads the answers and the logs of both harnesses. The styles:

  zero-shot         the question and the possible answers
  few-shot          N solved examples from the training rows first
  chain-of-thought  the examples with their proofs as sentences; with --shots 0 the prompt only
                    asks for step-by-step reasoning

--per-task N exports the first N stories of each task, --limit N that many stories in all, for
which the tasks take turns. `score` reads answers to a part of the stories.

The files of a harness limit an answer to --max-tokens. The context of the model must be longer: a
small one may need less. An answer that the limit cuts off in its thoughts is not mapped.

The seed selects the same examples in every style. Examples are training rows whose label follows
from the stated facts by the benchmark's 16 rules.
"""

import sys
from argparse import SUPPRESS
from pathlib import Path

from clutrr_jax.cli import run
from clutrr_jax.data.dataset import load
from clutrr_jax.language_models.export import DEFAULT_SHOTS, DEFAULT_TOKENS, FORMATS, STYLES, export
from generator.errors import Parser


def main(arguments: list[str], prog: str = "python -m clutrr_jax.language_models export") -> None:
    """Writes the prompts of all test stories of a data set."""
    parser = Parser(prog=prog, description=__doc__, allow_abbrev=False)
    parser.add_argument("--data", required=True, metavar="DATA",
                        help="a .zip, folder, .csv, .csv.gz, .parquet or .jsonl, or a name "
                        "such as clutrr-v1/gen23")  # fmt: skip
    # The only command of this module; `python -m clutrr_jax export` leaves it out.
    parser.add_argument("command", nargs="?", choices=["export"], help=SUPPRESS)
    parser.add_argument("--format", required=True, choices=FORMATS)
    parser.add_argument("--style", required=True, choices=list(STYLES))
    parser.add_argument("--shots", type=int, metavar="N",
                        help=f"number of examples [{DEFAULT_SHOTS}; zero-shot: 0]")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="N",
                        help="random seed for choosing examples [0]")  # fmt: skip
    parser.add_argument("--max-tokens", type=int, metavar="N", default=DEFAULT_TOKENS,
                        help="tokens of an answer with its thoughts, for lm-eval and inspect "
                        f"[{DEFAULT_TOKENS}]")  # fmt: skip
    parser.add_argument("--per-task", type=int, metavar="N",
                        help="number of stories of each task T.K [all]")  # fmt: skip
    parser.add_argument("--limit", type=int, metavar="N",
                        help="number of stories in all [all]")  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="DIR", help="output folder [one in the cache "
                        "folder, which is printed]")  # fmt: skip
    options = parser.parse_args(arguments)
    data = load(options.data)
    count, out = export(data, options.out, options.format, options.style, options.shots,
                        options.seed, options.max_tokens, options.per_task,
                        options.limit)  # fmt: skip
    about = sys.stdout if options.out else sys.stderr
    print(f"Wrote {count:,} prompts to {out}.", file=about)
    if options.format != "jsonl":
        print(f"An answer may have {options.max_tokens:,} tokens, its thoughts included "
              "(--max-tokens).", file=about)  # fmt: skip
    if not options.out:
        print(out)


if __name__ == "__main__":
    run(main)
