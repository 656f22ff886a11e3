"""Draws the report page of a run anew, without training: `python -m clutrr_jax.report RUN`.

RUN is a folder that launch.py wrote. Its report.html is drawn from what is in it and from the data
set that it names.
"""

from itertools import product
from pathlib import Path

from clutrr_jax.command import run
from clutrr_jax.data.prepare import GENERATE, prepare_run
from clutrr_jax.data.records import tasks
from clutrr_jax.report import page
from clutrr_jax.report.results import BASELINES, RESULTS, prediction_files
from generator.errors import InputError, at
from generator.files import read_json


def main(arguments: list[str]) -> None:
    """The command."""
    if arguments in (["--help"], ["-h"]):
        print(__doc__)
        return
    if len(arguments) != 1 or arguments[0].startswith("-"):
        raise InputError("command line: expected one folder, python -m clutrr_jax.report RUN")
    folder = Path(arguments[0])
    config = read_json(folder / "config.json", {"data": str})
    results = read_json(folder / "results.json", RESULTS)
    for model in results["models"]:
        if not (folder / model / "predictions.csv").exists():
            raise InputError(
                f"{at(folder / model)}: no predictions.csv, expected one for each model"
            )
    own = folder / "data"
    data = prepare_run(config["data"], results["config"]["generate"], own)
    if data.fingerprint != results["data"]["fingerprint"]:
        source = own if config["data"] in ("", GENERATE) else config["data"]
        raise InputError(f"{at(source)}: not the data that the run was trained and tested on")
    found = [(row["model"], row["task"]) for row in results["rows"]]
    names = [name for model in results["models"] for name in prediction_files(model, folder)]
    names += BASELINES
    if sorted(found) != sorted(product(names, (task for task, _ in tasks(data.test)))):
        raise InputError(
            f"{at(folder / 'results.json')}: expected one row for each model and each test"
        )
    page.write(results, data.test, folder)
    print(folder / "report.html")


if __name__ == "__main__":
    run(main)
