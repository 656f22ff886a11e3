"""Rules that a run of launch.py has learned, compared with the benchmark's 16 rules."""

from collections import defaultdict
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from clutrr_jax.evaluation.baselines import given_rules
from clutrr_jax.models.prover import learned_rules
from clutrr_jax.training.checkpoints import Checkpoints
from generator.errors import InputError, at
from generator.files import read_json
from generator.kinship import NUM_RELATIONS, PREDICATE_OF, PREDICATES, RELATIONS

# Models with learned rules, and the setting that holds the scale of their parameters.
PROVERS = {
    "prover": "prover.scale",
    "reader_prover": "reader_prover.prover.scale",
    "reader_prover_bert": "reader_prover_bert.prover.scale",
}
THRESHOLD = 0.5  # a rule with a higher probability, averaged over replicas, counts as learned


def read_learned(run: Path, model: str = "prover") -> np.ndarray:
    """Probabilities of the gendered rules `first, second -> head`, [replicas, R, R, R].

    The parameters are those of each replica's epoch with the best dev accuracy.

    Args:
      run: folder of the run.
      model: one of PROVERS.
    Raises:
      InputError: the folder holds no finished prover, or one that learns no rules.
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
    if reasoner != "prover":
        reason = "uses the 16 given rules" if reasoner == "rules" else "has no rules"
        raise InputError(
            f'{at(folder)}: the reasoner "{reasoner}" {reason}, expected the reasoner "prover"'
        )
    shape = (NUM_RELATIONS, NUM_RELATIONS, NUM_RELATIONS + 1)
    path = "" if model == "prover" else "['reasoner']"
    newest = Checkpoints(folder / "checkpoints").newest()
    table = None if newest is None else newest[1].get(f".best_params{path}['table'].value")
    if table is None or table.shape[1:] != shape or len(table) < replicas:
        raise InputError(
            f"{at(folder / 'checkpoints')}: expected a checkpoint of a finished prover"
        )
    return np.asarray(learned_rules(jnp.asarray(table[:replicas]), scale))


def describe(learned: np.ndarray) -> str:
    """Probabilities of the 16 rules, then all other learned rules, as text.

    Args:
      learned: [replicas, R, R, R], see `read_learned`.
    """
    chance = learned.mean(axis=0)
    lines = [f"{'chance':>6}  gendered  rule      (mean of {len(learned)} replicas)"]
    chances_of: dict[tuple[int, ...], list[float]] = defaultdict(list)
    for rule in given_rules():
        chances_of[tuple(PREDICATE_OF[rule])].append(float(chance[tuple(rule)]))
    for rule, chances in chances_of.items():
        first, second, head = (PREDICATES[p] for p in rule)
        learned_count = sum(c > THRESHOLD for c in chances)
        lines.append(
            f"{np.mean(chances):6.2f}  {learned_count:3} of {len(chances)}  "
            f"{first}, {second} -> {head}"
        )
    others = chance.copy()
    others[tuple(given_rules().T)] = 0
    found = np.argwhere(others > THRESHOLD)
    bodies = NUM_RELATIONS**2 - len(given_rules())
    lines += ["", f"Other rules: {len(found)}, for {bodies} gendered pairs without a given rule"]
    for rule in sorted(found.tolist(), key=lambda rule: -others[tuple(rule)]):
        first, second, head = (RELATIONS[r] for r in rule)
        lines.append(f"{others[tuple(rule)]:6.2f}            {first}, {second} -> {head}")
    return "\n".join(lines)
