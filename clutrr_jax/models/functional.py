"""Models as pure functions of parameters, buffers and a random key."""

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
from clutrr_jax.models.pretrained.load import load_encoder
from clutrr_jax.models.swept import Swept, SweptDropout


@dataclass(frozen=True, eq=False)
class ModelDef:
    """Everything about a model that is not an array."""

    spec: Spec  # entry of the registry
    config: Any  # settings of the model
    sizes: Sizes  # of the data
    learn_entities: bool = False  # whether entity embeddings are trained

    def init(self, key: jax.Array, pretrained: Any = None) -> tuple[Any, Any]:
        """Parameters and buffers of a new model; `pretrained` ones are from `load_pretrained`."""
        _, params, _, buffers = self._split(self._new(key))
        return nnx.merge_state(params, pretrained or {}), buffers

    def load_pretrained(self) -> Any:
        """Parameters that are not random: those of an encoder that is trained."""
        if self.sizes.encoder is None:
            return {}
        return nnx.State({"encoder": nnx.state(load_encoder(find_folder(self.config.folder)))})

    def merge(self, params: Any, buffers: Any, key: jax.Array) -> Any:
        """Returns the model with these arrays. `key` seeds its dropout."""
        graphdef, streams = self._structure
        leaves, treedef = jax.tree.flatten(streams)  # count and key of each stream
        seeds = [jax.random.fold_in(key, i) if i % 2 else jnp.uint32(0) for i in range(len(leaves))]
        return nnx.merge(graphdef, params, jax.tree.unflatten(treedef, seeds), buffers, copy=True)

    def evaluated(self, params: Any, buffers: Any) -> Any:
        """Returns the model with these arrays in evaluation mode, without dropout."""
        model = self.merge(params, buffers, jax.random.key(0))
        model.eval()
        return model

    @cached_property
    def _structure(self) -> tuple[Any, Any]:
        """Graph definition and abstract random number streams."""
        parts = self._split(nnx.eval_shape(lambda: self._new(jax.random.key(0))))
        return parts[0], parts[2]

    def _new(self, key: jax.Array) -> nnx.Module:
        model = self.spec.model(self.config, self.sizes, rngs=nnx.Rngs(key))
        for _, layer in nnx.iter_graph(model):
            if type(layer) is nnx.Dropout and isinstance(layer.rate, Swept):
                layer.__class__ = SweptDropout
        return model

    def _split(self, model: nnx.Module) -> tuple[Any, Any, Any, Any]:
        """Structure, parameters, random number streams and buffers."""
        trained = nnx.Any(nnx.Param, EntityVectors) if self.learn_entities else nnx.Param
        parts: Any = nnx.split(model, trained, nnx.RngState, ...)
        return parts
