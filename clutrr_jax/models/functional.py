"""Models as pure functions of parameters, buffers and a random key."""

import inspect
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.models import Spec
from clutrr_jax.models.common import EntityVectors
from clutrr_jax.models.pretrained.folder import find_folder
from clutrr_jax.models.pretrained.load import load_parameters
from generator.errors import InputError


def has_method(model: Any, name: str) -> bool:
    """Returns whether a model has an optional method. A layer of the same name is none."""
    return hasattr(type(model), name)


def check_methods(model: Any) -> None:
    """Checks the signatures of the optional methods of a model.

    Raises:
      InputError: one takes other arguments.
    """
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


@dataclass(frozen=True)
class ModelDef:
    """Everything about a model that is not an array.

    Attributes:
      spec: entry of the registry.
      config: settings of the model.
      sizes: sizes of the data.
      learn_entities: whether entity embeddings are trained.
    """

    spec: Spec
    config: Any
    sizes: Sizes
    learn_entities: bool = False

    def init(self, key: jax.Array, pretrained: Any = None) -> tuple[Any, Any]:
        """Parameters and buffers of a new model.

        Args:
          key: of the random numbers.
          pretrained: from `load_pretrained`.
        """
        _, params, _, buffers = self._split(self._new(key))
        return nnx.merge_state(params, pretrained or {}), buffers

    def load_pretrained(self) -> Any:
        """Parameters that are not random: those of an encoder that is trained."""
        if self.sizes.encoder is None:
            return {}
        return nnx.State({"encoder": load_parameters(find_folder(self.config.folder))})

    def merge(self, params: Any, buffers: Any, key: jax.Array) -> Any:
        """Returns the model with these arrays. `key` seeds its dropout."""
        graphdef, streams = self._structure
        leaves, treedef = jax.tree.flatten(streams)
        seeded = [
            jax.random.fold_in(key, i) if _is_key(leaf) else jnp.zeros(leaf.shape, leaf.dtype)
            for i, leaf in enumerate(leaves)
        ]
        return nnx.merge(graphdef, params, jax.tree.unflatten(treedef, seeded), buffers, copy=True)

    @cached_property
    def _structure(self) -> tuple[Any, Any]:
        """Graph definition and abstract random number streams."""
        parts = self._split(nnx.eval_shape(lambda: self._new(jax.random.key(0))))
        return parts[0], parts[2]

    def _new(self, key: jax.Array) -> nnx.Module:
        return self.spec.model(self.config, self.sizes, rngs=nnx.Rngs(key))

    def _split(self, model: nnx.Module) -> tuple[Any, Any, Any, Any]:
        """Structure, parameters, random number streams and buffers."""
        trained = nnx.Any(nnx.Param, EntityVectors) if self.learn_entities else nnx.Param
        parts: Any = nnx.split(model, trained, nnx.RngState, ...)
        return parts


def _is_key(x: Any) -> bool:
    return jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
