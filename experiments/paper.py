"""All results of the project: parts that are trained one by one and kept as data in `results/`.

    python -m experiments.paper --data=RELEASES                 # every part
    python -m experiments.paper figure5 star --data=RELEASES    # some of them
    python -m experiments.paper --estimate                      # hours of each part, as measured
    python -m experiments.render                                # then writes the pages

A part is one command of `launch.py`, which the pages show. Its runs resume, and runs that two parts
share are trained once. Settings such as `--config.only='k23/*'` go to the named parts, so that
several processes can share the work. `results/PART.json` has the accuracies with their intervals,
the settings that differ from the defaults, device, versions and seconds, and the commit and date at
which they were recorded.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict

from clutrr_jax.command_line import change_settings
from clutrr_jax.counts import write_counts
from clutrr_jax.experiment import DATA, SUMMARY, runs, select
from clutrr_jax.report.tables import changed_settings
from clutrr_jax.run import check_run_folder, configure_jax, identity, run_experiment
from clutrr_jax.user_files import load_experiment
from generator.errors import InputError, Parser, one_of, run_command
from generator.files import read_json, write_text

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"


@dataclass(frozen=True)
class Part:
    """One command of `launch.py`.

    Attributes:
      experiment: file in `experiments/`.
      settings: values of `--config.NAME`.
      released: the released data sets that it reads: "all", the name of a file, or "" for none.
      counts: whether it counts something and trains nothing.
    """

    experiment: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    released: str = ""
    counts: bool = False

    def flags(self, data: str) -> list[str]:
        """Returns its settings as flags. `data`: the folder of the released data sets."""
        path = data if self.released == "all" else f"{data}/{self.released}"
        released = {"data": path} if self.released else {}
        return [f"--config.{name}={value}" for name, value in {**released, **self.settings}.items()]


STRUCTURED = "prover,set_prover,ctp_linear,ctp_attentive,ctp_memory,ncrl,epignn,nbfnet"
GRAPHS = "gcn,rgcn,edge_rnn,edge_lstm,edge_gru,edge_cnn,edge_attention"
# A quarter of the steps at most, because a whole training takes half an hour on one core. Without
# the RMC, whose epochs take minutes, and models over an encoder, which need its weights.
QUARTER = dict.fromkeys(("bilstm_last", "bilstm_mean", "mac", "rn", "bilstm_2018"), 5000)
QUARTER |= dict.fromkeys(("gnn_2018_mean", "gnn_2018_attention"), 2500)
SLOW = {"models": ",".join(["edge_transformer", *QUARTER]), "train.replicas": 1} | {
    f"{model}.train.steps": steps for model, steps in QUARTER.items()
}
WITH_GENDERS = ("prover", "ctp_linear", "ctp_attentive", "ctp_memory")
ONE_BILSTM = {"bilstm_attention.train.replicas": 1, "bilstm_attention.train.steps": 5000}
FEW = {"gat.train.replicas": 3, "bilstm_attention.train.replicas": 1}
WORKSHOP = {"bilstm_2018.train.steps": 5000} | dict.fromkeys(
    ("gnn_2018_mean.train.steps", "gnn_2018_attention.train.steps"), 2000
)
PARTS = {
    "demo": Part("demo"),
    "figure5": Part("figure5", {"models": "gat,bilstm_attention"}, released="all"),
    "structured": Part("figure5", {"models": STRUCTURED, "train.replicas": 3}, released="all"),
    "graphs": Part("figure5", {"models": GRAPHS, "train.replicas": 3}, released="all"),
    "stories": Part("figure5", {"models": "reader_prover", "train.replicas": 2}, released="all"),
    "slow": Part("figure5", SLOW, released="data_089907f8.zip"),
    "genders": Part(
        "figure5",
        {"models": ",".join(WITH_GENDERS), "train.replicas": 3}
        | {f"{model}.share_genders": True for model in WITH_GENDERS},
        released="all",
    ),
    "star": Part("star", {"edge_transformer.dim": 64}),
    "table2": Part("table2", FEW | ONE_BILSTM, released="all"),
    "table4": Part("table4", FEW | ONE_BILSTM),
    "figure6": Part("figure6", FEW),
    "figure7": Part("figure7", ONE_BILSTM, released="all"),
    "workshop_table1": Part("workshop_table1", WORKSHOP),
    "table1": Part("table1", counts=True),
    "workshop_table2": Part("workshop_table2", counts=True),
    "leaderboard": Part("leaderboard"),
    "robustness": Part("robustness"),
    "scaling": Part("scaling", {"models": "prover,gat,reader_prover"}),
    "wordings": Part("wordings"),
    "diagnosis": Part("diagnosis", {"models": "reader_prover"}),
}
# Speed, measured by `python -m benchmarks models --json`: the models on one core of a CPU, and, at
# an earlier commit, on a GPU.
SPEEDS = ("speed_cpu", "speed_gpu")

# The content of a file in `results/`: part of the results of an experiment, and how it was made.
MADE = {"part": str, "commit": str, "date": str}
COUNTS = {"rows": [{"name": str, "measured": float, "published": float}]}
MEASUREMENTS = {
    "name": str, "scale": str, "columns": [str], "data": [{"name": str, "fingerprint": str}],
    "models": {"*": {"parameters": int, "replicas": int, "epochs": int, "seconds": float,
                     "settings": dict}},
    "series": [{"name": str, "baseline": bool}], "given": {"*": str},
    "rows": [{"task": str, "replicas": int | None, "count": int | None}
             | dict.fromkeys(("accuracy", "stderr", "ceiling"), int | float | None)],
    "averages": [dict], "references": [{"values": dict}],
    "claims": {"*": {"*": [str]}}, "note": str, "unfinished": [str],
    "versions": {"*": str}, "devices": [str], "wall_seconds": float,
}  # fmt: skip
SPEED = {"commit": str, "device": str,
         "rows": [{"model": str, "replicas": int, "batch": int, "train": [float]}]}  # fmt: skip
FORMS = {name: MADE | (COUNTS if part.counts else MEASUREMENTS) for name, part in PARTS.items()}
FORMS |= dict.fromkeys(SPEEDS, SPEED)


def load_part(name: str, data: str, settings: Sequence[str] = ()) -> ConfigDict:
    """Returns the settings of a part.

    Args:
      name: the part.
      data: the folder of the released data sets.
      settings: more flags `--config.NAME=VALUE`, for parts that train.
    Raises:
      InputError: a wrong setting.
    """
    part = PARTS[name]
    file = str(ROOT / "experiments" / f"{part.experiment}.py")
    if part.counts:
        return load_experiment(file)
    config = load_experiment(file)
    change_settings(ConfigDict({"config": config}), [*part.flags(data), *settings])
    return config


def run_part(name: str, config: ConfigDict, workdir: Path, out: Path) -> dict[str, str]:
    """Runs a part in the folder WORKDIR/NAME and writes OUT/NAME.json, unless no run is finished or
    the file that is there lacks fewer runs.

    Returns:
      {name of a failed run: reason}.
    """
    folder = workdir / name
    failed: dict[str, str] = {}
    print(f"\n{name}", flush=True)
    if PARTS[name].counts:
        print(write_counts(config.name, config.counts(), folder))
    else:
        share_runs(config, workdir, folder)
        _, failed = run_experiment(config, folder)
        jax.clear_caches()  # else the programs of all parts stay in memory
    results = read_json(folder / "results.json")
    path, missing = out / f"{name}.json", _unfinished(results)
    if path.exists() and len(read_json(path, FORMS[name]).get("unfinished", [])) < len(missing):
        print(f"{path} is kept: here more runs are missing ({len(missing)})")
    elif PARTS[name].counts or results["models"]:
        write_text(path, record(name, results))
    return failed


def _unfinished(results: Mapping[str, Any]) -> list[str]:
    return [run["name"] for run in results.get("runs", ()) if run["state"] != "finished"]


def share_runs(config: ConfigDict, workdir: Path, folder: Path) -> None:
    """Copies finished runs of other parts with the same settings, on the same released data."""
    finished = {_key(read_json(path.parent / "config.json")): path.parent
                for path in workdir.glob(f"**/{SUMMARY}")}  # fmt: skip
    for run in runs(config):
        source, target = finished.get(_key(identity(run))), folder / run.name
        if run.config.data and source and not target.exists():
            shutil.copytree(source, target)
            shutil.copy(source.parent / DATA, target.parent / DATA)


def _key(settings: Mapping[str, Any]) -> str:
    own = {name: value for name, value in settings.items() if name != "stories"}
    return json.dumps(own, sort_keys=True)


def record(name: str, results: Mapping[str, Any]) -> str:
    """Returns the content of `results/NAME.json`, given the `results.json` of the part.

    Numbers have four decimals; of the settings of a model only those that are not the default are
    kept. Each row has a line.
    """
    made = {"part": name, "commit": commit(), "date": f"{date.today()}"}
    kept = made | {key: results[key] for key in MEASUREMENTS if key in results}
    if "models" in results:
        kept["models"] = {model: about | {"settings": changed_settings(model, about["settings"])}
                          for model, about in results["models"].items()}  # fmt: skip
        kept["unfinished"] = _unfinished(results)
    text = json.dumps(kept)
    rounded = json.loads(text, parse_float=lambda digits: round(float(digits), 4))
    text = json.dumps(rounded, indent=1, ensure_ascii=False)
    return re.sub(r"\n(?: {3,}|  (?=[\]}]))", " ", text) + "\n"


def commit() -> str:
    """Returns the commit of the code, with "-dirty" if files other than those of `results/` and the
    pages differ from it; "" without Git."""
    if not shutil.which("git"):
        return ""
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    code = [*git, "diff", "--quiet", "HEAD", "--", ".", ":!results", ":!docs", ":!README.md"]
    dirty = subprocess.run(code, capture_output=True).returncode == 1
    return head.stdout.strip() + "-dirty" * dirty


def recorded(out: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """Returns the content of the files of all parts and of SPEEDS, by name.

    Raises:
      InputError: a damaged file.
    """
    paths = {name: out / f"{name}.json" for name in FORMS}
    return {name: read_json(path, FORMS[name]) for name, path in paths.items() if path.exists()}


def estimate(names: Sequence[str], out: Path) -> Iterator[str]:
    """Yields one line per part: the hours that its finished trainings took, as recorded in a
    folder, and the number of those that are missing."""
    measured = recorded(out)
    for name in names:
        about = measured.get(name)
        if not about:
            yield f"{name:18}not measured yet"
        elif PARTS[name].counts:
            yield f"{name:18}no training"
        else:
            hours, missing = about["wall_seconds"] / 3600, len(about["unfinished"])
            without = f"; still to be made: {missing}" if missing else ""
            yield f"{name:18}{hours:.2f} h on {', '.join(about['devices'])}{without}"


def _checked(name: str, options: Any, settings: Sequence[str]) -> ConfigDict:
    """Returns the settings of a part. Raises InputError if it cannot run with these options."""
    part = PARTS[name]
    if part.counts and settings:
        raise InputError(f"{name} {settings[0]}: expected no settings, since it trains nothing")
    if part.released and not options.data:
        raise InputError(f"{name}: expected --data=DIR, the folder of the released data sets")
    config = load_part(name, options.data, settings)
    if not part.counts:
        for run in select(config.only, runs(config)):
            check_run_folder(options.workdir / name / run.name, identity(run))
    return config


def main(argv: list[str]) -> int:
    """Runs the parts of a command line; returns 1 if some runs failed, else 0."""
    parser = Parser(prog="python -m experiments.paper", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--data", default="", help="folder of the released data sets")
    parser.add_argument("--workdir", type=Path, default=Path("runs/paper"), help="of the runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="of the results")
    parser.add_argument("--estimate", action="store_true", help="only print the hours by part")
    options, settings = parser.parse_known_args(argv)
    names = options.parts or list(PARTS)
    for name in names:
        one_of("part", name, PARTS)
    for argument in settings:
        if not argument.startswith("--config."):
            raise InputError(f'command line: "{argument}": expected --config.NAME=VALUE')
        if not argument.startswith("--config.only=") and options.out.resolve() == RESULTS.resolve():
            raise InputError(
                f"{argument}: expected --out=DIR too; {RESULTS} is for the settings of the parts"
            )
    if options.out.exists() and not options.out.is_dir():
        raise InputError(f"--out {options.out}: expected a folder")
    if options.estimate:
        print("\n".join(estimate(names, options.out)))
        return 0
    recorded(options.out)  # raises before anything is trained, as the following
    configs = {name: _checked(name, options, settings) for name in names}
    any_failed = False
    for name, config in configs.items():
        failed = run_part(name, config, options.workdir, options.out)
        any_failed = any_failed or bool(failed)
        for run, reason in failed.items():
            print(f"failed: {name}/{run}: {reason}", file=sys.stderr)
    return int(any_failed)


if __name__ == "__main__":
    configure_jax()
    sys.exit(run_command(main, sys.argv[1:]))
