"""The rules that a run has learned, beside the 16: `python -m clutrr_jax.rules RUN`.

RUN is a folder that launch.py wrote with `prover` or `reader_prover` among its models.
"""

from collections import defaultdict
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from clutrr_jax import command
from clutrr_jax.evaluation.baselines import given_rules
from clutrr_jax.models.prover import learned_rules
from clutrr_jax.training.checkpoints import Checkpoints
from generator.errors import InputError, Parser, at
from generator.files import read_json
from generator.kinship import NUM_RELATIONS, PREDICATE_OF, PREDICATES, RELATIONS

# Where in a run's settings the scale of their parameters stands.
PROVERS = {
    "prover": "prover.scale",
    "reader_prover": "reader_prover.prover.scale",
    "reader_prover_bert": "reader_prover_bert.prover.scale",
}
LEARNED = 0.5  # a rule whose chance is higher, in the mean over replicas, counts as learned


def read_learned(run: Path, model: str = "prover") -> np.ndarray:
    """The chance of each gendered rule `first, second -> head` at the epoch with the best dev
    accuracy of each replica, [replicas, R, R, R].

    Args:
      run: its folder.
      model: of those in PROVERS.
    Raises:
      InputError: the folder holds no finished prover, or none that learns rules.
    """
    folder, setting = run / model, PROVERS[model]
    try:
        replicas = read_json(folder / "model.json", {"replicas": int})["replicas"]
        settings = read_json(run / "config.json", {setting: float})
        scale = settings[setting]
    except InputError as error:
        raise InputError(
            f"{at(run)}: no finished prover, expected a run of launch.py with "
            f"--config.models=prover or reader_prover ({error})"
        ) from None
    reasoner = settings.get(f"{model}.reasoner", "prover")
    if reasoner == "rules":
        raise InputError(f"{at(folder)}: nothing is learned, its rules are the 16 (reasoner rules)")
    if reasoner != "prover":
        raise InputError(f"{at(folder)}: no rules to show (reasoner {reasoner}), expected prover")
    shape = (NUM_RELATIONS, NUM_RELATIONS, NUM_RELATIONS + 1)
    place = "" if model == "prover" else "['reasoner']"
    newest = Checkpoints(folder / "checkpoints").newest()
    table = None if newest is None else newest[1].get(f".best_params{place}['table'].value")
    if table is None or table.shape[1:] != shape or len(table) < replicas:
        raise InputError(f"{at(folder / 'checkpoints')}: no checkpoint of a finished prover")
    return np.asarray(learned_rules(jnp.asarray(table[:replicas]), scale))


def compare(learned: np.ndarray) -> str:
    """Learned rules beside the 16, as text.

    Args:
      learned: [replicas, R, R, R], see `read_learned`.
    """
    chance = learned.mean(axis=0)
    lines = [f"{'chance':>6}  gendered  rule      (mean of {len(learned)} replicas)"]
    of_rule: dict[tuple[int, ...], list[float]] = defaultdict(list)
    for rule in given_rules():
        of_rule[tuple(PREDICATE_OF[rule])].append(float(chance[tuple(rule)]))
    for body_and_head, chances in of_rule.items():
        first, second, head = (PREDICATES[p] for p in body_and_head)
        good = sum(c > LEARNED for c in chances)
        lines.append(
            f"{np.mean(chances):6.2f}  {good:3} of {len(chances)}  {first}, {second} -> {head}"
        )
    others = chance.copy()
    others[tuple(given_rules().T)] = 0
    found = np.argwhere(others > LEARNED)
    pairs = NUM_RELATIONS**2 - len(given_rules())
    lines += ["", f"Not of the 16: {len(found)}, of {pairs} gendered pairs that have no rule"]
    for rule in sorted(found.tolist(), key=lambda rule: -others[tuple(rule)]):
        names = [RELATIONS[r] for r in rule]
        lines.append(f"{others[tuple(rule)]:6.2f}            {names[0]}, {names[1]} -> {names[2]}")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Prints the rules of a run."""
    parser = Parser(prog="python -m clutrr_jax.evaluation.learned_rules", description=__doc__)
    parser.add_argument("run", metavar="RUN", type=Path, help="the folder of a run")
    folder = parser.parse_args(arguments).run
    models = [name for name in PROVERS if (folder / name / "model.json").exists()] or ["prover"]
    for model in models:
        if len(models) > 1:
            print(f"{model}:")
        print(compare(read_learned(folder, model)))


if __name__ == "__main__":
    command.run(main)
