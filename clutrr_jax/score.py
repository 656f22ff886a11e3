"""Scores predictions of any model, as a table and a plot.

A file of predictions is CSV or JSON Lines with the fields `id` and `prediction`, and `replica` if
there are several. An id is that of the row in the data, or T.K/ROW: the task and the row within it,
from 1. Also accepted are the predictions.csv of a run; its predictions.npz, also
several of them joined by commas, whose replicas are tested as one ensemble as well; and logs of the
harnesses of `python -m clutrr_jax.language_models export`: the .eval or .json file of inspect_ai,
whose epochs are replicas, and the folder of the samples_*.jsonl of lm-eval, whose newest run is
read.

A prediction is a relation or the free text of a language model, which is mapped to a relation by
these rules:

{rules}

For other relations than kinship a text must have the name after a marker (rule 6), or alone in the
last or first line.

Predictions that are not mapped, missing ones ("" or null) too, are counted and scored as wrong.
Free text has a second row, "NAME (strict)", in which only a relation counts that follows a marker
(rule 6) or stands alone in the last line or at the beginning (rule 7), and none that is read from
sentences. answers.csv says which relation was read from each. A story without a line was not asked:
a file is scored on the stories it has, which are the same in all replicas; the baselines are scored
on the stories that any file has. Every two files are compared on the stories that
both have, over their clauses and over the seeds of several replicas, two-sided, corrected over the
tasks by Holm's method. With --ids, each model has another row, on these stories.
"""

from pathlib import Path

from clutrr_jax.cli import run
from clutrr_jax.data.dataset import load
from clutrr_jax.language_models.answers import RULES
from clutrr_jax.language_models.submissions import read_ids, read_submissions, split_name
from clutrr_jax.report.evaluation import ANSWERS, evaluate, write
from generator.errors import InputError, Parser

__doc__ = __doc__.replace("{rules}", RULES)


def main(arguments: list[str], prog: str = "python -m clutrr_jax.score") -> None:
    """Prints the scores of files of predictions, and writes them to a folder."""
    parser = Parser(prog=prog, description=__doc__, allow_abbrev=False)
    parser.add_argument("--data", required=True, metavar="DATA",
                        help="a .zip, folder, .csv, .csv.gz, .parquet or .jsonl, or a name "
                        "such as clutrr-v1/gen23")  # fmt: skip
    parser.add_argument("--predictions", required=True, nargs="+", metavar="[NAME=]FILE",
                        help="files of predictions or logs of harnesses; NAME replaces the "
                        "name in the table")  # fmt: skip
    parser.add_argument("--ids", type=Path, metavar="FILE",
                        help="also show the accuracy on some test stories, whose ids stand in the "
                        "lines of FILE")  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="DIR",
                        help="folder for scores.txt, scores.json, scores.png and "
                        "answers.csv")  # fmt: skip
    options = parser.parse_args(arguments)
    for file in options.predictions if options.out else []:
        if split_name(file)[1].resolve() == (options.out / ANSWERS).resolve():
            raise InputError(f"--out {options.out}: {ANSWERS} would replace {file}, expected "
                             "another folder")  # fmt: skip
    if options.out and options.out.resolve() == Path(options.data).resolve():
        raise InputError(f"--out {options.out}: the folder of the data, expected another one")
    data = load(options.data)
    test = data.records("test")
    submissions = read_submissions(options.predictions, test)
    found = evaluate(data, submissions, read_ids(options.ids, test))
    print(found)
    if options.out:
        write(found, submissions, test, options.out)


if __name__ == "__main__":
    run(main)
