"""Predictions of a trained model.

FILE is a table that clutrr_jax.score reads, or, if its name ends in .npz, the probabilities of all
relations. DATA needs no targets. With --query instead, the answer to one question is printed, from
the text or the facts of a story:

  %(prog)s RUN --query Ann,Cy --story "[Ann] and her son [Bob] met ..."
  %(prog)s RUN --query Ann,Cy --facts "[('Ann', 'son', 'Bob'), ...]"
"""

from argparse import ArgumentParser
from pathlib import Path

from clutrr_jax.cli import run
from clutrr_jax.evaluation.predictions import export_predictions, write_predictions
from clutrr_jax.run import configure_jax
from clutrr_jax.trained_model import load_model, stories_of
from clutrr_jax.user_files import register_models
from generator.errors import InputError, Parser


def add_run(parser: ArgumentParser) -> None:
    """Adds the arguments of a command that reads a trained model."""
    parser.add_argument("run", type=Path, metavar="RUN",
                        help="folder of a finished run, such as runs/first/prover, or of an "
                        "experiment with one such run")  # fmt: skip
    parser.add_argument("--model-file", metavar="FILE",
                        help="Python file that registers the model of the run with "
                        "clutrr_jax.register, such as its experiment")  # fmt: skip


def main(arguments: list[str], prog: str = "python -m clutrr_jax.predict") -> None:
    """Predicts the stories of a data set, or answers one question."""
    parser = Parser(prog=prog, description=__doc__, allow_abbrev=False)
    add_run(parser)
    parser.add_argument("--data", metavar="DATA",
                        help="a .zip, folder, .csv, .csv.gz, .parquet or .jsonl, or a name such "
                        "as clutrr-v1/gen23: its test stories, or all if it has none")  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="FILE", help="a .csv or .npz to write")
    parser.add_argument("--query", metavar="X,Y", help="two names: what is Y to X?")
    parser.add_argument("--story", default="", help="text with all names in [brackets]: without, "
                        "its people are those of the query and the facts alone")  # fmt: skip
    parser.add_argument("--facts", help="list of triples (X, relation of Y to X, Y), such as "
                        "[('Ann', 'son', 'Bob')]: Bob is the son of Ann")  # fmt: skip
    options = parser.parse_args(arguments)
    asked = options.query is not None
    if asked == (options.data is not None) or (options.out is None) != asked:
        raise InputError("expected --data DATA --out FILE, or --query X,Y with --story or --facts")
    if not asked and options.out.suffix not in (".csv", ".npz"):
        raise InputError(f"--out {options.out}: expected a name that ends in .csv or .npz")
    configure_jax()
    if options.model_file is not None:
        register_models(options.model_file)
    model = load_model(options.run)
    if asked:
        print(model.answer(options.story, query=options.query, facts=options.facts))
        return
    _, records = stories_of(options.data, model.algebra)
    predictions = model.predict(records)
    write = export_predictions if options.out.suffix == ".csv" else write_predictions
    write(options.out, predictions, records)
    print(f"Wrote predictions of {len(records):,} stories to {options.out}.")


if __name__ == "__main__":
    run(main)
