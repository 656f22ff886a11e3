"""Checks of a model before its training."""

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
from flax import nnx

from clutrr_jax.data.batching import GRAPHS, InputKind
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.data.records import Records
from clutrr_jax.models import MODELS, has_method
from clutrr_jax.models.pretrained.folder import find_folder, read_config
from generator.errors import InputError


def check_model(name: str, config: Any, data: Prepared) -> None:
    """Builds a model without its arrays. Raises InputError if one of its settings, a file that it
    needs, or the signature of an optional method is wrong, or it cannot read the stories."""
    spec, sizes = MODELS[name], data.sizes
    for records in (data.train, data.test):
        check_input(name, spec.kind, records)
    try:
        if spec.encoder:
            sizes = replace(sizes, states=read_config(find_folder(config[name].folder)).hidden_size)
        model = nnx.eval_shape(lambda: spec.model(config[name], sizes, rngs=nnx.Rngs(0)))
        check_methods(model)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def check_input(name: str, kind: InputKind, records: Records) -> None:
    """Raises InputError if a model cannot read these stories: one has no facts, or no text."""
    what = "facts" if kind in GRAPHS else "text"
    sizes = np.diff(records.edge_start) if kind in GRAPHS else list(map(len, records.stories))
    if 0 in sizes:
        story = list(sizes).index(0) + 1
        raise InputError(
            f"{name}: reads {what}, but story {story} of {len(sizes):,} has none; expected {what} "
            "in every story"
        )


def check_methods(model: Any) -> None:
    """Raises InputError if an optional method of a model takes other arguments."""
    for name in ("loss", "attention", "read", "answer", "word_facts"):
        arguments = ("batch", "graph") if name == "answer" else ("batch",)
        if has_method(model, name):
            signature = inspect.signature(getattr(type(model), name))
            try:
                signature.bind("self", *arguments)
            except TypeError:
                raise InputError(
                    f"method {name}{signature}: expected {name}(self, {', '.join(arguments)}), or "
                    "another name for a method that is not for the report or the training"
                ) from None
