"""Prints the rules that a run has learned: `python -m clutrr_jax.rules RUN`.

RUN is a folder written by launch.py with `prover`, `reader_prover` or `reader_prover_bert` among
its models.
"""

from pathlib import Path

import jax.numpy as jnp
import numpy as np

from clutrr_jax.cli import run
from clutrr_jax.models.prover import learned_rules
from clutrr_jax.training.checkpoints import Checkpoints
from generator.algebra import Algebra
from generator.algebras import DEFAULT, algebra_of
from generator.errors import InputError, Parser
from generator.files import read_json

# Models with learned rules, and the setting that holds the scale of their parameters.
PROVERS = {
    "prover": "prover.scale",
    "reader_prover": "reader_prover.prover.scale",
    "reader_prover_bert": "reader_prover_bert.prover.scale",
}
THRESHOLD = 0.5  # a rule with a higher probability, averaged over replicas, counts as learned


def read_learned(run: Path, model: str = "prover") -> np.ndarray:
    """Probabilities of the rules `first, second -> head` between Q types, [replicas, Q, Q, Q].

    The types are the predicates, or the relations in a run without `share_genders`. The parameters
    are those that are tested.

    Args:
      run: folder of the run.
      model: one of PROVERS.
    Raises:
      InputError: the folder holds no finished prover, or one that learns no rules.
    """
    folder, setting = run / model, PROVERS[model]
    try:
        replicas = read_json(folder / "model.json")["replicas"]
        settings = read_json(folder / "config.json")
    except InputError as error:
        raise InputError(
            f"{run}: no finished prover, expected a run of launch.py with "
            f"--config.models=prover or reader_prover ({error})"
        ) from None
    reasoner = settings.get(f"{model}.reasoner", "prover")
    if reasoner != "prover":
        raise InputError(f'{folder}: the reasoner "{reasoner}" learns no rules, expected "prover"')
    path = "" if model == "prover" else "['reasoner']"
    newest = Checkpoints(folder / "checkpoints").newest()
    arrays = {} if newest is None else newest[1]
    name = f"{path}['table'].value"
    table = arrays.get(f".best_params{name}", arrays.get(f".ema_params{name}"))
    if table is None:
        raise InputError(f"{folder / 'checkpoints'}: expected a checkpoint of a finished prover")
    return np.asarray(learned_rules(jnp.asarray(table[:replicas]), settings[setting]))


def describe(learned: np.ndarray, algebra: Algebra) -> str:
    """Describes [replicas, Q, Q, Q] from `read_learned`: the rules of the algebra, then others."""
    chance, view = learned.mean(axis=0), algebra.coarse
    is_gendered = algebra.view is not None and len(chance) == len(algebra.relations)
    used = algebra if is_gendered else view.algebra
    given, names = np.argwhere(used.composition), used.relations
    head = f"{'chance':>6}  gendered  rule" if is_gendered else f"{'chance':>6}  rule"
    lines = [f"{head}      (mean of {len(learned)} replicas)"]
    chances_of: dict[tuple[int, ...], list[float]] = {
        tuple(rule): [] for rule in np.argwhere(view.algebra.composition).tolist()
    }
    for rule in given.tolist():
        predicates = [view.predicate[r] for r in rule] if is_gendered else rule
        chances_of[tuple(predicates)].append(float(chance[tuple(rule)]))
    for body, chances in chances_of.items():
        text = "{}, {} -> {}".format(*(view.algebra.relations[p] for p in body))
        if is_gendered:
            text = f"{sum(c > THRESHOLD for c in chances):3} of {len(chances)}  {text}"
        lines.append(f"{np.mean(chances):6.2f}  {text}")
    chance[tuple(given.T)] = 0
    others = sorted(np.argwhere(chance > THRESHOLD).tolist(), key=lambda rule: -chance[tuple(rule)])
    lines += ["", f"Other rules: {len(others)}"]
    for rule in others:
        text = "{}, {} -> {}".format(*(names[r] for r in rule))
        lines.append(f"{chance[tuple(rule)]:6.2f}  {text}")
    return "\n".join(lines)


def legend(algebra: Algebra) -> str:
    """Explains the rules of `describe`, and the names of predicates."""
    say = algebra.sentence
    lines = [
        "chance is the learned probability of a rule. The rule first, second -> head says that",
        f"if {say('X', 'first', 'Z')} and {say('Z', 'second', 'Y')}, then {say('X', 'head', 'Y')}:",
    ]
    if view := algebra.view:
        for p, name in enumerate(view.algebra.relations):
            either = view.in_words(algebra.relations, p, view.relation.shape[1])
            lines.append(f"  {name:14} = {either}")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Prints the learned rules of a run."""
    parser = Parser(prog="python -m clutrr_jax.rules", description=__doc__)
    parser.add_argument("run", metavar="RUN", type=Path, help="folder of a run")
    folder = parser.parse_args(arguments).run
    models = [name for name in PROVERS if (folder / name / "model.json").exists()] or ["prover"]
    algebra = algebra_of(folder / models[0]) or DEFAULT
    for model in models:
        if len(models) > 1:
            print(f"{model}:")
        try:
            print(describe(read_learned(folder, model), algebra))
        except InputError as error:  # one of several models learns no rules
            if len(models) == 1:
                raise
            print(error)
    print(f"\n{legend(algebra)}")


if __name__ == "__main__":
    run(main)
