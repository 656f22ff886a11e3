"""Rebuilds the report of an experiment without training.

Reads the results, the data set and the outputs of each run in the folder, and writes the files of
the report again. Experiments with several data sets are rebuilt by their own command with
--config.only=none.
"""

import re
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from ml_collections import ConfigDict

from clutrr_jax.cli import run
from clutrr_jax.data.prepare import Prepared, prepare_run
from clutrr_jax.experiment import SINGLE, Run
from clutrr_jax.models import MODELS
from clutrr_jax.report.results import REPORT_FILES
from clutrr_jax.report.write import write_report
from generator.errors import InputError, Parser
from generator.files import read_json

BENCHMARK = ("sinha2019clutrr", "sinha2018compositional")  # in `references.bib`


def main(arguments: list[str], prog: str = "python -m clutrr_jax.report") -> None:
    """Runs the command with the given arguments."""
    parser = Parser(prog=prog, description=__doc__)
    parser.add_argument("folder", type=Path, metavar="EXPERIMENT", nargs="?",
                        help="folder of an experiment, such as runs/first")  # fmt: skip
    parser.add_argument("--add", action="append", default=[], metavar="[NAME=]FILE",
                        help="also show predictions of another model on these test stories, in "
                        "any form that clutrr_jax.score reads; may be repeated")  # fmt: skip
    parser.add_argument("--ids", type=Path, metavar="FILE",
                        help="also show the accuracy of models that read text on some test "
                        "stories, whose ids stand in the lines of FILE")  # fmt: skip
    parser.add_argument("--data", metavar="FILE", help="where the data set of the runs is now, if "
                        "it has moved")  # fmt: skip
    parser.add_argument("--cite", action="store_true", help="print BibTeX of the benchmark and of "
                        "the models of EXPERIMENT, or of all models, instead")  # fmt: skip
    options = parser.parse_args(arguments)
    folder = options.folder
    if folder is None:
        if not options.cite:
            parser.error("expected EXPERIMENT or --cite")
        print(citations(MODELS))
        return
    if not (folder / REPORT_FILES[0]).exists():
        raise InputError(f"{folder}: no {REPORT_FILES[0]}, expected the folder of an experiment")
    form = {"name": str, "runs": [{"model": str, "state": str}]}
    results = read_json(folder / REPORT_FILES[0], form)
    if options.cite:
        print(citations(dict.fromkeys(one["model"] for one in results["runs"])))
        return
    if results.get("scale") or any(one["dataset"] for one in results["runs"]):
        raise InputError(
            f"{folder}: several data sets; --config.only=none of the command of "
            f"{results['name']} rebuilds its report"
        )
    finished = [one["model"] for one in results["runs"] if one["state"] == "finished"]
    if not finished:
        raise InputError(f"{folder}: no finished run, expected one for the stories of the report")
    (training,) = SINGLE.trainings
    config = read_json(folder / finished[0] / "config.json")
    settings = ConfigDict({"data": options.data or config["data"]})
    runs = [Run("", one["model"], settings, training) for one in results["runs"]]

    def prepare(config: ConfigDict, stories: Path) -> Prepared:
        return prepare_run(config.data, stories)

    write_report({"name": results["name"]}, runs, folder, prepare, options.add, options.ids)
    print(folder / REPORT_FILES[3])


def entries() -> dict[str, str]:
    """Returns all entries of BibTeX by key."""
    text = (files("clutrr_jax.report") / "references.bib").read_text(encoding="utf-8")
    return {match[1]: match[0] for match in re.finditer(r"@\w+\{(\w+),\n.*?\n\}", text, re.S)}


def citations(models: Iterable[str]) -> str:
    """Returns the BibTeX of the benchmark and of the models, and which model has which papers."""
    papers = {model: MODELS[model].cites if model in MODELS else () for model in models}
    keys = dict.fromkeys([*BENCHMARK, *(key for of_model in papers.values() for key in of_model)])
    found = entries()
    lines = [f"% benchmark: {', '.join(BENCHMARK)}"]
    lines += [f"% {m}: {', '.join(of_model) or 'no entry'}" for m, of_model in papers.items()]
    return "\n".join([*lines, *(found[key] for key in keys)])


if __name__ == "__main__":
    run(main)
