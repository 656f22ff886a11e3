"""The data card of a release: README.md with a YAML header as on the Hugging Face Hub."""

from collections.abc import Iterable
from importlib.resources import files

_HEADER = """\
---
pretty_name: clutrr-{version}
license: apache-2.0
language:
- en
task_categories:
- question-answering
- text-classification
tags:
- reasoning
- systematic-generalization
- kinship
size_categories:
- 100K<n<1M
configs:
{configs}
---
"""
_CONFIG = """\
- config_name: {name}
  data_files:
  - split: train
    path: {name}/*_train.{form}
  - split: test
    path: {name}/*_test.{form}"""


def card(version: str, configs: Iterable[str], form: str) -> str:
    """Returns the card.

    Args:
      version: of the release.
      configs: names of its data sets, which are folders.
      form: the format of its files.
    """
    listed = "\n".join(_CONFIG.format(name=name, form=form) for name in configs)
    text = files("generator.benchmark").joinpath(f"{version}.md").read_text("utf-8")
    return _HEADER.format(version=version, configs=listed) + "\n" + text
