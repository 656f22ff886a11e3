"""Prints the rules that a run has learned: `python -m clutrr_jax.rules RUN`.

RUN is a folder written by launch.py with `prover`, `reader_prover` or `reader_prover_bert` among
its models.
"""

from pathlib import Path

from clutrr_jax.command import run
from clutrr_jax.evaluation.learned_rules import PROVERS, describe, legend, read_learned
from generator.errors import InputError, Parser


def main(arguments: list[str]) -> None:
    """Prints the learned rules of a run."""
    parser = Parser(prog="python -m clutrr_jax.rules", description=__doc__)
    parser.add_argument("run", metavar="RUN", type=Path, help="folder of a run")
    folder = parser.parse_args(arguments).run
    models = [name for name in PROVERS if (folder / name / "model.json").exists()] or ["prover"]
    for model in models:
        if len(models) > 1:
            print(f"{model}:")
        try:
            print(describe(read_learned(folder, model)))
        except InputError as error:  # one of several models learns no rules
            if len(models) == 1:
                raise
            print(error)
    print(f"\n{legend()}")


if __name__ == "__main__":
    run(main)
