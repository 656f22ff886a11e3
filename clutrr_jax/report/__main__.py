"""Draws the report page of a run anew, without training: `python -m clutrr_jax.report RUN`.

RUN is a folder that launch.py wrote. Its report.html is drawn from what is in it and from the data
set that it names.
"""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from clutrr_jax.command import run
from clutrr_jax.evaluation import Row
from clutrr_jax.prepare import prepare
from clutrr_jax.report import page
from generator.errors import InputError, at


def _read(path: Path, keys: set[str]) -> dict[str, Any]:
    """A JSON object of a run that has these keys."""
    try:
        found = json.loads(path.read_text())
    except OSError:
        raise InputError(f"{at(path)}: not there, expected a finished run of launch.py") from None
    except ValueError:
        raise InputError(f"{at(path)}: damaged, expected JSON") from None
    if not isinstance(found, dict) or keys - set(found):
        raise InputError(
            f"{at(path)}: written by another version, expected {', '.join(sorted(keys))}"
        )
    return found


def main(arguments: list[str]) -> None:
    """The command."""
    if arguments in (["--help"], ["-h"]):
        print(__doc__)
        return
    if len(arguments) != 1 or arguments[0].startswith("-"):
        raise InputError("command line: expected one folder, python -m clutrr_jax.report RUN")
    folder = Path(arguments[0])
    config = _read(folder / "config.json", {"data"})
    results = _read(folder / "results.json", {"config", "data", "device", "models", "rows"})
    if any(set(row) != {field.name for field in fields(Row)} for row in results["rows"]):
        raise InputError(f"{at(folder / 'results.json')}: its rows are of another version")
    for model in results["models"]:
        if not (folder / model / "predictions.csv").exists():
            raise InputError(
                f"{at(folder / model)}: no predictions.csv, expected one for each model"
            )
    source = config["data"] or folder / "data"
    data = prepare(source)
    if data.fingerprint != results["data"]["fingerprint"]:
        raise InputError(f"{at(source)}: not the data that the run was trained and tested on")
    page.write(results, data.test, folder)
    print(folder / "report.html")


if __name__ == "__main__":
    run(main)
