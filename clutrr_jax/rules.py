"""Prints the rules that a model has learned: `prover`, `reader_prover`, `reader_prover_bert`,
or another one with a method `rules()`. Of an experiment, those of all such models.
"""

from pathlib import Path

import numpy as np

from clutrr_jax.cli import run
from clutrr_jax.models import MODELS
from clutrr_jax.predict import add_run
from clutrr_jax.trained_model import load_model, run_folders
from clutrr_jax.user_files import register_models
from generator.errors import InputError, Parser
from generator.files import read_json
from generator.relations.algebra import Algebra
from generator.relations.algebras import DEFAULT, algebra_of

THRESHOLD = 0.5  # a rule with a higher probability, averaged over replicas, counts as learned
# Of several heads of a pair, those count as learned whose probability is at least this fraction of
# the largest.
OF_LARGEST = 0.1


def learned_rules(folder: Path) -> np.ndarray | None:
    """Rules of the model of a run, see `Model.rules`. Others are not loaded."""
    spec = MODELS.get(read_json(folder / "config.json", {"model": str})["model"])
    if spec and not (hasattr(spec.model, "rules") or "reasoner" in spec.settings):
        return None
    return load_model(folder).rules()


def describe(learned: np.ndarray, algebra: Algebra) -> str:
    """Describes [replicas, Q, Q, Q] from `Model.rules`: the rules of the algebra, then others."""
    if (algebra.composition.sum(axis=-1) > 1).any():
        return describe_sets(learned, algebra)
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


def describe_sets(learned: np.ndarray, algebra: Algebra) -> str:
    """Describes [replicas, R, R, R] for an algebra whose pairs have several heads: the set of each
    pair from which something follows, and where it is another one than that of the algebra."""
    chance, every = learned.mean(axis=0), np.ones(len(algebra.relations), bool)
    lines = [f"{'chance':>6}  heads      (mean of {len(learned)} replicas)"]
    same, pairs = 0, np.argwhere(algebra.composition.any(axis=-1))
    for first, second in pairs.tolist():
        heads, given = chance[first, second], algebra.composition[first, second]
        is_learned = heads.sum() > THRESHOLD
        found = heads >= OF_LARGEST * heads.max() if is_learned else every
        names = [" or ".join(np.array(algebra.relations)[held]) for held in (found, given)]
        text = names[0] if is_learned else "nothing"
        same += (found == given).all()
        note = "" if (found == given).all() else f"; the algebra: {names[1]}"
        pair = f"{algebra.relations[first]}, {algebra.relations[second]}"
        lines.append(f"{heads.sum():6.2f}  {pair} -> {text}{note}")
    return "\n".join([*lines, "", f"Pairs with the heads of the algebra: {same} of {len(pairs)}"])


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


def main(arguments: list[str], prog: str = "python -m clutrr_jax.rules") -> None:
    """Prints the learned rules of a run."""
    parser = Parser(prog=prog, description=__doc__, allow_abbrev=False)
    add_run(parser)
    options = parser.parse_args(arguments)
    if options.model_file is not None:
        register_models(options.model_file)
    found = {folder: learned_rules(folder) for folder in run_folders(options.run)}
    learned = {folder: rules for folder, rules in found.items() if rules is not None}
    if not learned:
        names = ", ".join(folder.name for folder in found)
        raise InputError(
            f"{options.run}: {names} learned no rules, expected prover, reader_prover, "
            "reader_prover_bert with the reasoner prover, or a model with a method rules()"
        )
    for folder, rules in learned.items():
        if len(learned) > 1:
            print(f"{folder}:")
        algebra = algebra_of(folder) or DEFAULT
        print(describe(rules, algebra))
    print(f"\n{legend(algebra)}")


if __name__ == "__main__":
    run(main)
