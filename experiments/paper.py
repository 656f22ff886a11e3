"""All results of the project: parts that are trained one by one and kept as data in `results/`.

    python -m experiments.paper --data=RELEASES                 # every part
    python -m experiments.paper figure5 star --data=RELEASES    # some of them
    python -m experiments.render                                # then writes the pages

A part is one command of `launch.py`, and its runs resume. Settings such as
`--config.only='k23/*'` go to the named parts, so that several processes can share the work.
`results/PART.json` has the accuracies with their intervals, the settings that differ from the
defaults, device, versions and seconds, and the commit and date at which they were recorded.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import jax

from clutrr_jax.experiment import runs, select
from clutrr_jax.launch import launch, parse
from clutrr_jax.report.tables import changed_settings
from clutrr_jax.run import configure_jax
from generator.errors import InputError, Parser, one_of, run_command
from generator.files import read_json, write_text

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
WORKDIR = "runs/paper"
RELEASES = "RELEASES"  # stands for the folder of the released data sets
ALL = {"data": RELEASES}
ONE = {"data": f"{RELEASES}/data_089907f8.zip"}
STRUCTURED = "prover,ctp_linear,ctp_attentive,ctp_memory,ncrl,epignn,nbfnet"
GRAPHS = "gcn,rgcn,edge_rnn,edge_lstm,edge_gru,edge_cnn,edge_attention"
# Without the RMC, whose epochs take minutes, and models over an encoder, which need its weights.
SLOW_MODELS = (
    "edge_transformer,bilstm_last,bilstm_mean,mac,rn,transformer,bilstm_2018,gnn_2018_mean,"
    "gnn_2018_attention"
)
SLOW = {"models": SLOW_MODELS, "train.replicas": 1, "edge_transformer.train.replicas": 2}
WITH_GENDERS = ("prover", "ctp_linear", "ctp_attentive", "ctp_memory")
GENDERS = {"models": ",".join(WITH_GENDERS), "train.replicas": 3} | {
    f"{model}.share_genders": True for model in WITH_GENDERS
}
ONE_BILSTM = {"bilstm_attention.train.replicas": 1, "bilstm_attention.train.steps": 5000}
FEW = {"gat.train.replicas": 3, "bilstm_attention.train.replicas": 1}
WORKSHOP = dict.fromkeys(("gnn_2018_mean.train.steps", "gnn_2018_attention.train.steps"), 2000)
# A file in `experiments/`, and values of `--config.NAME`.
PARTS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "demo": ("demo", {}),
    "figure5": ("figure5", ALL | {"models": "gat,bilstm_attention"}),
    "structured": ("figure5", ALL | {"models": STRUCTURED, "train.replicas": 3}),
    "graphs": ("figure5", ALL | {"models": GRAPHS, "train.replicas": 3}),
    "transformers": ("figure5", ALL | {"models": "transformer_facts,rat", "train.replicas": 3}),
    "stories": ("figure5", ALL | {"models": "reader_prover", "train.replicas": 2}),
    "slow": ("figure5", ONE | SLOW),
    "genders": ("figure5", ALL | GENDERS),
    "star": ("star", {"edge_transformer.dim": 64}),
    "table2": ("table2", ALL | FEW | ONE_BILSTM),
    "table4": ("table4", FEW | ONE_BILSTM),
    "figure6": ("figure6", FEW),
    "figure7": ("figure7", ALL | ONE_BILSTM),
    "workshop_table1": ("workshop_table1", WORKSHOP),
    "table1": ("table1", {}),
    "workshop_table2": ("workshop_table2", {}),
    "leaderboard": ("leaderboard", {}),
    "robustness": ("robustness", {}),
    "scaling": ("scaling", {}),
    "scaling_genders": ("scaling", {"models": "prover", "prover.share_genders": True}),
    "wordings": ("wordings", {}),
    "diagnosis": ("diagnosis", {"models": "reader_prover"}),
}
# Speed, measured by `python -m benchmarks models --json`: the models on one core of a CPU, and, at
# an earlier commit, on a GPU.
SPEEDS = ("speed_cpu", "speed_gpu")

# Parts of the results of an experiment that its record keeps.
KEPT = (
    "name", "scale", "columns", "data", "models", "rows", "claims", "note", "versions", "devices",
    "wall_seconds",
)  # fmt: skip


def flags(name: str, data: str, root: str | Path = ".", workdir: str | Path = WORKDIR) -> list[str]:
    """Returns the flags of a part. `data`: the folder of the released data sets."""
    experiment, settings = PARTS[name]
    own = {key: str(value).replace(RELEASES, data) for key, value in settings.items()}
    places = f"--config={Path(root, 'experiments', experiment)}.py", f"--workdir={workdir}/{name}"
    return [*places, *(f"--config.{key}={value}" for key, value in own.items())]


def record(name: str, results: Mapping[str, Any]) -> str:
    """Returns the content of `results/NAME.json`, given the `results.json` of the part.

    Numbers have four decimals; of the settings of a model only those that are not the default are
    kept. Each row has a line.
    """
    made = {"part": name, "commit": commit(), "date": f"{date.today()}"}
    kept = made | {key: results[key] for key in KEPT if key in results}
    if "models" in results:
        kept["models"] = {model: about | {"settings": changed_settings(model, about["settings"])}
                          for model, about in results["models"].items()}  # fmt: skip
        kept["unfinished"] = [run["name"] for run in results["runs"] if run["state"] != "finished"]
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
    """Returns the content of the files of all parts and of SPEEDS, by name."""
    paths = {name: out / f"{name}.json" for name in (*PARTS, *SPEEDS)}
    return {name: read_json(path) for name, path in paths.items() if path.exists()}


def main(argv: list[str]) -> int:
    """Runs the parts of a command line; returns 1 if some runs failed, else 0."""
    parser = Parser(prog="python -m experiments.paper", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--data", default="", help="folder of the released data sets")
    parser.add_argument("--workdir", type=Path, default=Path(WORKDIR), help="of the runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="of the results")
    options, settings = parser.parse_known_args(argv)
    commands = {}
    for name in options.parts or PARTS:
        one_of("part", name, PARTS)
        if "data" in PARTS[name][1] and not options.data:
            raise InputError(f"{name}: expected --data=DIR, the folder of the released data sets")
        commands[name] = [parser.prog, *flags(name, options.data, ROOT, options.workdir), *settings]
        config = parse(commands[name])[1]  # raises before anything is trained
        if "models" in config:
            select(config.only, runs(config))
    codes = []
    for name, command in commands.items():
        print(f"\n{name}", flush=True)
        codes.append(launch(command))
        jax.clear_caches()  # else the programs of all parts stay in memory
        results = read_json(options.workdir / name / "results.json")
        if results.get("models", True):  # a run is finished, or nothing is trained
            write_text(options.out / f"{name}.json", record(name, results))
    return max(codes)


if __name__ == "__main__":
    configure_jax()
    sys.exit(run_command(main, sys.argv[1:]))
