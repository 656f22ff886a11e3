"""Relation Network over the sentences of a story.

Shapes: B stories, T tokens, S sentences, H hidden dimension, G width of g.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.models import reader
from clutrr_jax.models.setting import Setting

# g, f1 and f2: Sinha et al. 2019, appendix 2.2; four layers of g: Santoro et al. 2017.
SETTINGS = reader.SETTINGS | {"g": Setting(64, "width of g", at_least=1)}
G_LAYERS, F1, F2 = 4, 256, 64  # layers of g, widths of the layers of f
SHORTEST_SENTENCE = 5  # tokens; a shorter sentence is joined with the next one


def sentence_ends(tokens: jax.Array, marks: tuple[int, ...], shortest: int) -> jax.Array:
    """True at tokens that end a sentence: [B, T] -> bool [B, T].

    A sentence ends at one of the `marks` if it has at least `shortest` tokens up to and including
    the mark. A story of T tokens therefore has at most (T - 1) // shortest + 1 sentences. The
    result at a token depends on earlier tokens only, so that padding does not change it.
    """

    def step(length, is_mark):
        length = length + 1
        end = is_mark & (length >= shortest)
        return jnp.where(end, 0, length), end

    is_mark = reader.is_any_of(tokens, marks).T
    return jax.lax.scan(step, jnp.zeros(len(tokens), jnp.int32), is_mark)[1].T


class RelationNetwork(nnx.Module):
    """Relation Network (Santoro et al. 2017), as in Sinha et al. 2019, appendix 1.1.

    The answer is f(sum of g(sentence 1, sentence 2, question) over all pairs of sentences). The
    BiLSTM reads each sentence separately, and the mean of its states is the sentence vector. The
    question is the pair of query people, which the readout does not see again.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.marks = sizes.sentence_ends
        self.reader = reader.Reader(config, sizes, rngs=rngs)
        width = self.reader.width
        # First layer of g, split by input, so that no array of all pairs times the concatenated
        # width is needed.
        self.first = nnx.Linear(width, config.g, use_bias=False, rngs=rngs)
        self.second = nnx.Linear(width, config.g, use_bias=False, rngs=rngs)
        self.question = nnx.Linear(2 * width, config.g, rngs=rngs)
        self.g = nnx.List(nnx.Linear(config.g, config.g, rngs=rngs) for _ in range(G_LAYERS - 1))
        self.f1 = nnx.Linear(config.g, F1, rngs=rngs)
        self.f2 = nnx.Linear(F1, F2, rngs=rngs)
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)
        self.out = nnx.Linear(F2, sizes.relations, rngs=rngs)

    def __call__(self, batch: TokenBatch) -> jax.Array:
        """Relation logits [B, relations]."""
        end = sentence_ends(batch.tokens, self.marks, SHORTEST_SENTENCE)  # [B, T]
        words = batch.mask & ~end
        x = self.reader(batch.tokens, words)  # [T, B, 2H]
        index = jnp.cumsum(end, axis=1)  # [B, T] sentence of each token
        sentences = jnp.arange((end.shape[1] - 1) // SHORTEST_SENTENCE + 1)
        member = (index[:, None] == sentences[:, None]) & words[:, None]  # [B, S, T]
        count = member.sum(axis=-1)  # [B, S]
        mean = member / jnp.maximum(count, 1)[..., None]
        sentence = jnp.einsum("bst,tbh->bsh", mean, x)

        first, second = reader.query_states(batch, x)
        question = self.question(jnp.concatenate([first, second], axis=-1))  # [B, G]
        left = self.first(sentence) + question[:, None]
        pairs = nnx.relu(left[:, :, None] + self.second(sentence)[:, None])  # [B, S, S, G]
        for layer in self.g:
            pairs = nnx.relu(layer(pairs))
        is_sentence = count > 0
        is_pair = is_sentence[:, :, None] & is_sentence[:, None]  # [B, S, S]
        story = jnp.einsum("bij,bijg->bg", is_pair.astype(pairs.dtype), pairs)
        return self.out(self.dropout(nnx.relu(self.f2(nnx.relu(self.f1(story))))))
