"""Rebuilds the report of a run without training.

Reads the results, the data set and the outputs of each model in the run folder, and writes
results.json, results.md, curve.png and report.html again.
"""

from dataclasses import replace
from pathlib import Path

from clutrr_jax.command import run
from clutrr_jax.data.prepare import GENERATE, prepare_run
from clutrr_jax.language_models.submissions import read_submissions
from clutrr_jax.report.write import write_report
from generator.errors import InputError, Parser
from generator.files import read_json


def main(arguments: list[str]) -> None:
    """Runs the command with the given arguments."""
    parser = Parser(prog="python -m clutrr_jax.report", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="RUN", help="a folder written by launch.py")
    parser.add_argument("--add", action="append", default=[], metavar="[NAME=]FILE",
                        help="also show predictions of another model on these test stories, in "
                        "any form that clutrr_jax.score reads; may be repeated")  # fmt: skip
    options = parser.parse_args(arguments)
    folder = options.folder
    if not all((folder / name).exists() for name in ("config.json", "results.json")):
        raise InputError(
            f"{folder}: no run in this folder, expected one that launch.py has finished; "
            "--config.only=none of its command rebuilds the report of a grid"
        )
    results = read_json(folder / "results.json")
    config = results["config"]
    data = prepare_run(config["data"], config["generate"], folder / "data")
    if data.fingerprint != results["data"]["fingerprint"]:
        source = folder / "data" if config["data"] in ("", GENERATE) else config["data"]
        raise InputError(f"{source}: not the data set of this run, expected the same files")
    models, versions = list(results["models"]), results["versions"]
    data = replace(data, name=results["data"]["name"])  # of stories that were not in a file
    added = read_submissions(options.add, data.test)
    write_report(models, config, data, folder, results["device"], versions, added)
    print(folder / "report.html")


if __name__ == "__main__":
    run(main)
