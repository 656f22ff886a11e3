"""`python -m generator`: generates a data set."""

import argparse
import signal
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from generator.benchmark.release import VERSIONS, write_benchmark
from generator.errors import InputError, Parser, check_range
from generator.networks import command as networks_command
from generator.relations.algebras import NAMES
from generator.stories.config import Config
from generator.stories.noise import NOISE_TYPES
from generator.write import FORMATS, write_dataset


def _parser(prog: str) -> argparse.ArgumentParser:
    noise_types = ", ".join(f"{t} {noise.name}" for t, noise in NOISE_TYPES.items())
    parser = Parser(
        prog=prog,
        description="Generates a CLUTRR data set: a train file, a dev file if --dev-rows is "
        "given, a test file per task, config.json. "
        "In a task T.K, K facts lead to the answer, and T is the kind of noise facts: "
        f"{noise_types}. Memory: the answer is stated.",
        epilog="Other commands: audit, stats, import-paraphrases, workshop "
        "(python -m generator COMMAND --help).",
        allow_abbrev=False,
    )
    parser.add_argument("--algebra", default=NAMES[0], metavar="NAME",
                        help=f"{', '.join(NAMES)} or a JSON file; others than {NAMES[0]} have "
                        "their own options (--algebra NAME --help)")  # fmt: skip
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="output folder")
    parser.add_argument("--workers", type=int, default=1, metavar="N",
                        help="number of processes; does not change the output [1]")  # fmt: skip
    parser.add_argument("--format", choices=FORMATS, default="csv",
                        help="file format [csv]")  # fmt: skip
    parser.add_argument("--benchmark", choices=VERSIONS, metavar="VERSION",
                        help=f"write this benchmark release ({', '.join(VERSIONS)}), whose "
                        "settings are fixed")  # fmt: skip
    group = parser.add_argument_group(
        "settings", "In brackets: the default; the value in the paper or the released data."
    )
    for f in fields(Config):
        default = ",".join(map(str, f.default)) if isinstance(f.default, tuple) else f.default
        default = "no" if default is False else default if default != "" else "the embedded bank"
        metavar = {int: "N", float: "P", tuple: "LIST"}.get(type(f.default), "NAME")
        kind = {"type": f.metadata["parse"], "metavar": metavar, "default": f.default}
        group.add_argument(
            f"--{f.name.replace('_', '-')}",
            help=f"{f.metadata['help']} [{default}; {f.metadata['paper']}]".replace("%", "%%"),
            **({"action": "store_true"} if isinstance(f.default, bool) else kind),
        )
    return parser


def main(argv: list[str], prog: str = "python -m generator") -> int:
    """Generates a data set and prints its files. Raises InputError for unusable settings."""
    of_algebra = Parser(prog=prog, description=None, add_help=False, allow_abbrev=False)
    of_algebra.add_argument("--algebra", default=NAMES[0])
    networks = of_algebra.parse_known_args(argv)[0].algebra != NAMES[0]
    options = (networks_command.parser if networks else _parser)(prog).parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        files = networks_command.write_networks(options) if networks else _write({**vars(options)})
    except KeyboardInterrupt:
        print(f"interrupted; run the same command again to resume {options.out}", file=sys.stderr)
        return 130
    for path in files:
        print(path)
    return 0


def _write(options: dict[str, Any]) -> list[Path]:
    """Writes stories of families, with the options of `_parser`, and returns their files."""
    out, workers, form = options.pop("out"), options.pop("workers"), options.pop("format")
    del options["algebra"]
    version, config = options.pop("benchmark"), Config(**options)
    check_range("--workers", workers, 1)
    if version and config != Config():
        raise InputError("--benchmark has fixed settings, expected only --out, --workers, --format")
    if version:
        return write_benchmark(version, out, workers, form)
    return write_dataset(config, out, workers, form)
