"""`python -m clutrr_jax COMMAND ...`: the commands of the installed package."""

from collections.abc import Callable
from importlib import import_module

from clutrr_jax.cli import run
from generator.errors import InputError

# Command -> module with a function `main` of its arguments and its name, and what it does.
COMMANDS = {
    "train": ("clutrr_jax.launch", "trains and tests models"),
    "predict": ("clutrr_jax.predict", "predictions of a trained model"),
    "score": ("clutrr_jax.score", "scores predictions of any model"),
    "export": ("clutrr_jax.language_models.__main__", "test stories as prompts"),
    "report": ("clutrr_jax.report.__main__", "rebuilds the report of an experiment"),
    "rules": ("clutrr_jax.rules", "rules that a model has learned"),
    "generate": ("generator.command", "generates a data set"),
    "audit": ("generator.audit", "checks a data set"),
}
USAGE = "\n".join([
    "usage: python -m clutrr_jax COMMAND ...\n",
    *(f"  {name:9} {what}" for name, (_, what) in COMMANDS.items()),
    "\npython -m clutrr_jax COMMAND --help lists the options of a command.",
])  # fmt: skip


def main(arguments: list[str]) -> int | None:
    """Runs a command with its arguments."""
    name, *others = arguments or ["--help"]
    if name in ("--help", "-h"):
        print(USAGE)
        return 0
    if name not in COMMANDS:
        raise InputError(f'no command "{name}", expected one of {", ".join(COMMANDS)}')
    command: Callable[[list[str], str], int | None] = import_module(COMMANDS[name][0]).main
    return command(others, f"python -m clutrr_jax {name}")


if __name__ == "__main__":
    run(main)
