"""Folders with test stories as prompts, for evaluation harnesses or for a script of one's own.

Every folder has prompts.jsonl. The files of a harness import nothing of this project and refer to
each other by name only, so that the folder can be moved to another machine.
"""

import json
from pathlib import Path

from clutrr_jax.data.dataset import Dataset
from clutrr_jax.data.records import tasks
from clutrr_jax.language_models import answers
from clutrr_jax.language_models.prompts import examples, prompts
from generator.errors import check_range
from generator.files import write_text

HARNESSES = Path(__file__).parent / "harnesses"
FORMATS = ("jsonl", "lm-eval", "inspect")
TASK = "clutrr"  # name of the group of lm-eval and of the task of inspect
DEFAULT_SHOTS = 4
# Style -> minimum and maximum number of examples.
STYLES = {"zero-shot": (0, 0), "few-shot": (1, 1000), "chain-of-thought": (0, 1000)}


def export(
    data: Dataset, out: Path, format: str, style: str, shots: int | None = None, seed: int = 0
) -> None:
    """Writes a folder with the test stories as prompts.

    Args:
      data: must have test rows, and training rows if there are examples.
      out: the folder; existing files of the same names are replaced.
      format: one of FORMATS.
      style: one of STYLES.
      shots: number of examples; by default DEFAULT_SHOTS if the style has any.
      seed: random seed for choosing the examples. It selects the same ones in every style.
    Raises:
      InputError: a setting is out of range, rows are missing, or the folder cannot be written.
    """
    least, most = STYLES[style]
    shots = min(DEFAULT_SHOTS, most) if shots is None else shots
    check_range(f"--style {style}: --shots", shots, least, most)
    check_range("--seed", seed, 0)
    test, steps = data.records("test"), style == "chain-of-thought"
    solved = examples(data.records("train"), shots, seed, steps) if shots else []
    rows = list(prompts(test, solved, steps))
    files = {"prompts.jsonl": "".join(json.dumps(row) + "\n" for row in rows)}
    if format != "jsonl":
        sources = [Path(answers.__file__), *(HARNESSES / format).iterdir()]
        files |= {source.name: source.read_text("utf-8") for source in sources if source.is_file()}
    if format == "lm-eval":
        files |= _lm_eval_tasks([task for task, _ in tasks(test)])
    for name, content in files.items():
        write_text(out / name, content)


def _lm_eval_tasks(tasks: list[str]) -> dict[str, str]:
    """One YAML file per task T.K, and one of the group with the mean of all stories."""
    names = [f"{TASK}_{task}" for task in tasks]
    files = {
        f"{name}.yaml": f'include: _clutrr_yaml\ntask: {name}\ndataset_kwargs: {{task: "{task}"}}\n'
        for name, task in zip(names, tasks, strict=True)
    }
    group = [f"group: {TASK}", "task:", *(f"  - {name}" for name in names),
             "aggregate_metric_list:", "  - metric: acc", "    aggregation: mean",
             "    weight_by_size: true", "metadata:", "  version: 1.0"]  # fmt: skip
    return files | {f"{TASK}.yaml": "\n".join(group) + "\n"}
