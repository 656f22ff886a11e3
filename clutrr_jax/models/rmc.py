"""Relational memory core: a recurrent network with a memory of slots that attend to each other.

Shapes: B stories, T tokens, M slots, K heads, D = K * head size, F = size of the queries, keys and
values of all heads together.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.models.common import READOUT, WORD_DROPOUT, Readout, dropout
from clutrr_jax.models.lstm import TokenEmbedding
from clutrr_jax.models.reader import query_states
from clutrr_jax.models.setting import Setting

# Sinha et al. 2019, appendix 2.2 (one block, one gate per unit, dropout 0).
SETTINGS = {
    "embedding": Setting(100, "width of the embeddings of tokens", at_least=1),
    "head": Setting(192, "width of a head", at_least=1),
    "heads": Setting(4, "attention heads; a slot is as wide as all of them", at_least=1),
    "key": Setting(64, "width of a key", at_least=1),
    "readout": READOUT,
    "dropout": dropout(0.0),
    "word_dropout": WORD_DROPOUT,
}
SLOTS = 2  # of the memory
ATTENTION_LAYERS = 3  # layers of the MLP after the attention


class RMC(nnx.Module):
    """Relational recurrent network (Santoro et al. 2018, equations 2 to 8) that reads the story
    forward (Sinha et al. 2019, appendix 1.1).

    The last memory is the story vector. The vector of a person is the mean of the memories at their
    mentions.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.heads, self.key = config.heads, config.key
        dim = config.heads * config.head
        attention = config.heads * (2 * config.key + config.head)
        self.embed = TokenEmbedding(sizes, config.embedding, config.word_dropout, rngs=rngs)
        self.inputs = nnx.Linear(config.embedding, dim, rngs=rngs)
        self.attention = nnx.Linear(dim, attention, rngs=rngs)
        self.attention_norm = nnx.LayerNorm(attention, rngs=rngs)
        self.mlp = nnx.List(nnx.Linear(dim, dim, rngs=rngs) for _ in range(ATTENTION_LAYERS))
        self.norms = nnx.List(nnx.LayerNorm(dim, rngs=rngs) for _ in range(2))
        self.gate_inputs = nnx.Linear(dim, 2 * dim, use_bias=False, rngs=rngs)
        self.gate_memory = nnx.Linear(dim, 2 * dim, use_bias=False, rngs=rngs)
        # Input gate 0, forget gate 1.
        self.gate_bias = nnx.Param(jnp.repeat(jnp.array([0.0, 1.0]), dim))
        self.readout = Readout(3 * SLOTS * dim, config, sizes, rngs=rngs)

    def __call__(self, batch: TokenBatch) -> jax.Array:
        """Relation logits [B, relations]."""
        states = self.memories(batch.tokens.T, batch.mask.T)  # [T, B, M D]
        return self.readout(states[-1], *query_states(batch, states))

    def memories(self, tokens: jax.Array, mask: jax.Array) -> jax.Array:
        """Memory after each token: [T, B], [T, B] -> [T, B, M D]. Padding does not change it.

        Slots attend to the slots and to the current word. The word itself does not attend, because
        its output is not used. Keys, values and gate inputs of the words therefore do not depend
        on the memory and are computed for all steps before the scan.
        """
        words = self.inputs(self.embed(tokens))  # [T, B, D]
        _, key, value = self.split(words)  # [T, B, K, ...]
        gates = self.gate_inputs(words) + self.gate_bias[...]  # [T, B, 2 D]
        batch, dim = words.shape[1:]
        first = jnp.broadcast_to(jnp.eye(SLOTS, dim), (batch, SLOTS, dim))

        def step(memory, now):
            key, value, gates, keep = now
            new = self.attend(memory, key, value)
            gates = nnx.sigmoid(gates[:, None] + self.gate_memory(jnp.tanh(memory)))
            write, remember = jnp.split(gates, 2, axis=-1)
            new = write * jnp.tanh(new) + remember * memory
            memory = jnp.where(keep[:, None, None], new, memory)
            return memory, memory

        states = jax.lax.scan(step, first, (key, value, gates, mask))[1]
        return states.reshape(len(tokens), batch, -1)

    def split(self, rows: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Query, key and value of each head: [..., D] -> three arrays [..., K, size]."""
        projected = self.attention_norm(self.attention(rows))  # [..., F]
        projected = projected.reshape(*rows.shape[:-1], self.heads, -1)
        query, key, value = jnp.split(projected, (self.key, 2 * self.key), axis=-1)
        return query * self.key**-0.5, key, value

    def attend(self, memory: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
        """Slots after one block of attention over the slots and a word: [B, M, D] -> [B, M, D]."""
        query, own_key, own_value = self.split(memory)  # [B, M, K, ...]
        keys = jnp.concatenate([own_key, key[:, None]], axis=1)  # [B, M + 1, K, ...]
        values = jnp.concatenate([own_value, value[:, None]], axis=1)
        weight = nnx.softmax(jnp.einsum("bmkd,bnkd->bkmn", query, keys))
        found = jnp.einsum("bkmn,bnkd->bmkd", weight, values).reshape(memory.shape)
        x = self.norms[0](memory + found)
        y = x
        for layer in self.mlp:
            y = nnx.relu(layer(y))
        return self.norms[1](x + y)
