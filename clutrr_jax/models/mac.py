"""MAC: attention over the words, steered step by step by attention over the question.

Shapes: B stories, T tokens, D dimension of control, memory and words (twice the BiLSTM's hidden).
"""

import jax
import jax.numpy as jnp
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.models import reader
from clutrr_jax.models.common import Readout

# Iterations, the shared question and the last dropout: Sinha et al. 2019, appendix 2.2.
CONFIG = reader.CONFIG | {
    "readout": 200,
    "iterations": 6,
    "dropout_mac": 0.2,  # of what the memory gives, of what is read and of what is written
}


class MAC(nnx.Module):
    """Compositional attention network (Hudson and Manning 2018). The question is the two asked
    people, the same projection of it enters every iteration, and the words are the states of a
    BiLSTM; the last memory is the story (Sinha et al. 2019, appendix 1.1)."""

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.iterations = config.iterations
        self.reader = reader.Reader(config, sizes, rngs=rngs)
        dim = self.reader.width

        def linear(inputs: int, use_bias: bool = True) -> nnx.Linear:
            return nnx.Linear(inputs, dim, use_bias=use_bias, rngs=rngs)

        self.first = nnx.Param(jnp.zeros((2, dim)))  # control and memory before any step
        self.question = linear(2 * dim)
        self.control = linear(2 * dim)
        self.attend_question = nnx.Linear(dim, 1, use_bias=False, rngs=rngs)
        self.memory = linear(dim)
        self.word = linear(dim, use_bias=False)
        self.combine_memory = linear(dim, use_bias=False)
        self.combine_word = linear(dim, use_bias=False)
        self.attend_words = nnx.Param(jax.random.normal(rngs.params(), (dim,)) / dim**0.5)
        self.write = linear(2 * dim)
        self.dropout = nnx.Dropout(config.dropout_mac, rngs=rngs)
        self.readout = Readout(3 * dim, config.readout, sizes.relations, config.dropout, rngs=rngs)

    def __call__(self, batch: TokenBatch) -> jax.Array:
        """Relation logits [B, relations]."""
        x = self.reader(batch.tokens, batch.mask)  # [T, B, D]
        people = reader.query_states(batch, x)  # [2, B, D]
        question = jnp.tanh(self.question(jnp.concatenate([*people], axis=-1)))
        words, mask = x.swapaxes(0, 1), batch.mask  # [B, T, D], [B, T]
        control, memory = jnp.broadcast_to(self.first[...][:, None], people.shape)
        for _ in range(self.iterations):
            control = self.steer(control, question, people)
            key = self.dropout(self.read(control, self.dropout(memory)))
            score = jnp.where(mask, jnp.einsum("btd,bd->bt", words, key), -1e9)
            weight = nnx.softmax(score) * mask
            found = jnp.einsum("bt,btd->bd", weight, words)
            memory = self.write(jnp.concatenate([self.dropout(found), memory], axis=-1))
        return self.readout(memory, *people)

    def steer(self, control: jax.Array, question: jax.Array, people: jax.Array) -> jax.Array:
        """The next control: attention over the asked people. [B, D] twice, [2, B, D] -> [B, D]."""
        wanted = self.control(jnp.concatenate([control, question], axis=-1))
        weight = nnx.softmax(self.attend_question(wanted * people), axis=0)  # [2, B, 1]
        return (weight * people).sum(axis=0)

    def read(self, control: jax.Array, memory: jax.Array) -> jax.Array:
        """The vector whose product with a word is the word's score.

        The paper scores word w by a . (control * [I A + w C]) with I = (memory M) * (w W), which is
        linear in w: w . (W ((memory M) * (A u)) + C u) with u = a * control. So each iteration has
        one product with the words instead of three matrices times each. [B, D], [B, D] -> [B, D].
        """
        u = self.attend_words[...] * control
        return self.word(self.memory(memory) * self.combine_memory(u)) + self.combine_word(u)
