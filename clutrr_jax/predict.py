"""Predictions of a trained model: `python -m clutrr_jax.predict RUN --data DATA --out FILE`.

RUN is the folder of a finished run, such as runs/first/gat. FILE is a table that clutrr_jax.score
reads, or, if its name ends in .npz, the probabilities of all relations. DATA needs no targets.
With --query instead, the answer to one question is printed, from the text or the facts of a story:

  python -m clutrr_jax.predict RUN --query Ann,Cy --story "[Ann] and her son [Bob] met ..."
  python -m clutrr_jax.predict RUN --query Ann,Cy --facts "[('Ann', 'son', 'Bob'), ...]"
"""

from pathlib import Path

from clutrr_jax.cli import run
from clutrr_jax.evaluation.predictions import write_predictions, write_probabilities
from clutrr_jax.run import configure_jax
from clutrr_jax.trained_model import load_model, stories_of
from generator.errors import InputError, Parser


def main(arguments: list[str]) -> None:
    """Predicts the stories of a data set, or answers one question."""
    parser = Parser(prog="python -m clutrr_jax.predict", description=__doc__, allow_abbrev=False)
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a finished run")
    parser.add_argument("--data", metavar="DATA",
                        help="a .zip, folder, .csv, .csv.gz, .parquet or .jsonl: its test stories, "
                        "or all if it has none")  # fmt: skip
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
    if asked and not (options.story or options.facts):
        raise InputError("--query: expected --story or --facts as well")
    if not asked and options.out.suffix not in (".csv", ".npz"):
        raise InputError(f"--out {options.out}: expected a name that ends in .csv or .npz")
    configure_jax()
    model = load_model(options.run)
    if asked:
        print(model.answer(options.story, query=options.query, facts=options.facts))
        return
    records = stories_of(options.data, model.algebra)
    predictions = model.predict(records)
    write = write_predictions if options.out.suffix == ".csv" else write_probabilities
    write(options.out, predictions, records)
    print(f"Wrote predictions of {len(records):,} stories to {options.out}.")


if __name__ == "__main__":
    run(main)
