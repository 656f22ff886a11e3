"""Scores anyone's predictions: `python -m clutrr_jax.score`."""

from clutrr_jax import command
from clutrr_jax.language_models.scoring import main

if __name__ == "__main__":
    command.run(main)
