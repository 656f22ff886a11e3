"""Writes the test stories as prompts for a language model: `python -m clutrr_jax.prompts`."""

from clutrr_jax import command
from clutrr_jax.language_models.prompts import main

if __name__ == "__main__":
    command.run(main)
