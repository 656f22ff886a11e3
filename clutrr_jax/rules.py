"""Prints the rules that a run has learned: `python -m clutrr_jax.rules RUN`."""

from clutrr_jax import command
from clutrr_jax.evaluation.learned_rules import main

if __name__ == "__main__":
    command.run(main)
