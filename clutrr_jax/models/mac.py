"""MAC network: repeated attention over the words, controlled by attention over the question.

Shapes: B stories, T tokens, D dimension of control, memory and words, which is twice the hidden
dimension of the BiLSTM.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.models import reader
from clutrr_jax.models.common import READOUT, Readout
from clutrr_jax.models.setting import Setting

# Iterations, the shared question and the last dropout: Sinha et al. 2019, appendix 2.2.
SETTINGS = reader.SETTINGS | {
    "readout": READOUT,
    "iterations": Setting(6, "iterations of control and memory", at_least=1),
}
DROPOUT = 0.2  # of the memory, of its projection and of the retrieved words


class MAC(nnx.Module):
    """Compositional attention network (Hudson and Manning 2018), as in Sinha et al. 2019, appendix
    1.1.

    The question is the pair of query people, and every iteration uses the same projection of it.
    The words are the states of a BiLSTM. The last memory is the story vector.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.iterations = config.iterations
        self.reader = reader.Reader(config, sizes, rngs=rngs)
        dim = self.reader.width

        def linear(inputs: int, use_bias: bool = True) -> nnx.Linear:
            return nnx.Linear(inputs, dim, use_bias=use_bias, rngs=rngs)

        self.first = nnx.Param(jnp.zeros((2, dim)))  # initial control and memory
        self.question = linear(2 * dim)
        self.control = linear(2 * dim)
        self.attend_question = nnx.Linear(dim, 1, use_bias=False, rngs=rngs)
        self.memory = linear(dim)
        self.word = linear(dim, use_bias=False)
        self.combine_memory = linear(dim, use_bias=False)
        self.combine_word = linear(dim, use_bias=False)
        self.attend_words = nnx.Param(jax.random.normal(rngs.params(), (dim,)) / dim**0.5)
        self.write = linear(2 * dim)
        self.dropout = nnx.Dropout(DROPOUT, rngs=rngs)
        self.readout = Readout(3 * dim, config, sizes, rngs=rngs)

    def __call__(self, batch: TokenBatch) -> jax.Array:
        """Relation logits [B, relations]."""
        x = self.reader(batch.tokens, batch.mask)  # [T, B, D]
        people = reader.query_states(batch, x)  # [2, B, D]
        question = jnp.tanh(self.question(jnp.concatenate([*people], axis=-1)))
        words, mask = x.swapaxes(0, 1), batch.mask  # [B, T, D], [B, T]
        control, memory = jnp.broadcast_to(self.first[...][:, None], people.shape)
        for _ in range(self.iterations):
            control = self.next_control(control, question, people)
            key = self.dropout(self.word_key(control, self.dropout(memory)))
            score = jnp.where(mask, jnp.einsum("btd,bd->bt", words, key), -1e9)
            weight = nnx.softmax(score) * mask
            found = jnp.einsum("bt,btd->bd", weight, words)
            memory = self.write(jnp.concatenate([self.dropout(found), memory], axis=-1))
        return self.readout(memory, *people)

    def next_control(self, control: jax.Array, question: jax.Array, people: jax.Array) -> jax.Array:
        """Attention over the query people: [B, D], [B, D], [2, B, D] -> [B, D]."""
        query = self.control(jnp.concatenate([control, question], axis=-1))
        weight = nnx.softmax(self.attend_question(query * people), axis=0)  # [2, B, 1]
        return (weight * people).sum(axis=0)

    def word_key(self, control: jax.Array, memory: jax.Array) -> jax.Array:
        """Vector whose dot product with a word is the attention score of the word.

        The read unit of the paper scores word w by a . (control * [I A + w C]) with
        I = (memory M) * (w W). This is linear in w: w . (W ((memory M) * (A u)) + C u) with
        u = a * control. An iteration then needs one product with each word instead of three
        matrix products. [B, D], [B, D] -> [B, D].
        """
        u = self.attend_words[...] * control
        return self.word(self.memory(memory) * self.combine_memory(u)) + self.combine_word(u)
