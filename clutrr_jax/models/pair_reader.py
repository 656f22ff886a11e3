"""Reader that predicts the relation of every pair of people from the text.

Shapes: B stories, T tokens, M names of people, P people of the largest story, A distances between
names, D embedding dimension, H hidden dimension of each direction, R relations.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.data.vocabulary import FIRST_ENTITY, PAD
from clutrr_jax.models.lstm import BiLSTM
from generator.kinship import INVERSE, PREDICATE_OF

# Tuned on data_089907f8.
CONFIG = {
    "embedding": 64,
    "hidden": 64,
    "layers": 1,
    "pair": 128,  # hidden dimension of the classifier of two names
    "dropout": 0.3,
    "word_dropout": 0.1,  # not used with frozen BERT states
    "max_distance": 2,  # of two names that are classified, in names; 2 covers .998 of the facts
    "none_logit": 2.0,  # initial logit of "no relation"
    "relation_word_prior": 4.0,  # initial logit that a relation gains from its own word
    "matmul_dtype": "bfloat16",  # of the LSTMs' input projections; float32 or bfloat16
}
# [R, R] 1 where relation s of Y to X is possible if relation r of X to Y holds.
INVERSES = (INVERSE[PREDICATE_OF][:, None] == PREDICATE_OF).astype(np.float32)
RECENT = 3  # names back to look for an earlier mention of the same person
WINDOW = 4  # tokens before and after two names to look for relation words


class PairReader(nnx.Module):
    """BiLSTM over the story and a classifier of the relation between two nearby names.

    Several pairs of names can refer to the same two people: their probabilities are combined by a
    noisy or.

    People have no identity. The embedding of a name depends only on how many names ago the same
    person was named, so that renaming people changes nothing. Words of relations close to two names
    increase the logits of that relation, and of its inverses in the opposite direction ("daughter":
    father and mother). Without this prior, training from answers alone cannot tell relations apart
    that could be exchanged with each other without changing any answer.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.max_distance, self.relations = config.max_distance, sizes.relations
        self.relation_words = sizes.relation_words
        self.first_word = FIRST_ENTITY + sizes.entities

        def vectors(count: int) -> nnx.Param:
            return nnx.Param(jax.random.normal(rngs.params(), (count, config.embedding)) / 2)

        self.frozen = sizes.states > 0
        if self.frozen:
            self.states = nnx.Linear(sizes.states, config.embedding, rngs=rngs)
        else:
            self.words = vectors(sizes.tokens - self.first_word)
        self.recency = vectors(RECENT + 1)
        self.word_dropout = nnx.Dropout(config.word_dropout, rngs=rngs)
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)
        width = 2 * config.hidden
        dims = [config.embedding] + [width] * (config.layers - 1)
        self.layers = nnx.List(
            BiLSTM(dim, config.hidden, config.matmul_dtype, rngs=rngs) for dim in dims
        )
        self.first = nnx.Linear(width, config.pair, use_bias=False, rngs=rngs)
        self.second = nnx.Linear(width, config.pair, use_bias=False, rngs=rngs)
        self.between = nnx.Linear(width + config.embedding, config.pair, use_bias=False, rngs=rngs)
        self.distance = nnx.Param(jnp.zeros((config.max_distance, config.pair)))
        bias = jnp.zeros((2, sizes.relations + 1)).at[:, -1].set(config.none_logit).reshape(-1)
        self.out = nnx.Linear(config.pair, len(bias), bias_init=lambda *_: bias, rngs=rngs)
        # Rows: relation words before, between and after two names. Columns: relation of the second
        # person to the first and vice versa. Between two names the first is more frequent, as in
        # "his wife".
        prior = jnp.array([[0.3, 0.3], [1.0, 0.25], [0.3, 0.3]])
        self.relation_word_weight = nnx.Param(config.relation_word_prior * prior)

    def __call__(self, batch: TokenBatch) -> jax.Array:
        """Probability of each relation of each ordered pair of people, [B, P, P, R]. A sum over
        relations below 1 leaves the rest to "no relation"."""
        steps = batch.tokens.shape[1]
        story = jnp.arange(len(batch.tokens))[:, None]
        position = jnp.minimum(batch.name_positions, steps - 1)  # [B, M]
        token = jnp.where(batch.name_positions < steps, batch.tokens[story, position], PAD)
        is_person = (token - FIRST_ENTITY)[..., None] == batch.people[:, None]  # [B, M, P]
        person = jnp.where(is_person.any(axis=-1), is_person.argmax(axis=-1), -1)  # [B, M]

        x = self._embed(batch, person)  # [T, B, D]
        states = x
        for layer in self.layers:
            states = self.dropout(layer(states, batch.mask.T))
        probability = nnx.softmax(self._classify(batch, position, x, states))[..., :-1]
        other = _following(person, self.max_distance, -1)  # [A, B, M]
        return _combine(probability, person, other, batch.people.shape[1])

    def _embed(self, batch: TokenBatch, person: jax.Array) -> jax.Array:
        """Token vectors [T, B, D], given the person of each name [B, M]."""
        back = jnp.zeros_like(person)
        for distance in range(RECENT, 0, -1):
            before = jnp.pad(person, ((0, 0), (distance, 0)), constant_values=-1)[:, :-distance]
            back = jnp.where(before == person, distance, back)
        steps = batch.tokens.shape[1]
        is_name = (jnp.arange(steps) == batch.name_positions[..., None]).any(axis=1)  # [B, T]
        name = jnp.maximum(jnp.cumsum(is_name, axis=1) - 1, 0)
        recency = self.recency[...][jnp.take_along_axis(back, name, axis=1)]  # [B, T, D]
        if self.frozen:
            assert batch.states is not None
            word = self.states(batch.states)
        else:
            tokens = batch.tokens - self.first_word
            known = (tokens >= 0) & (self.word_dropout(jnp.ones(tokens.shape)) > 0)
            word = jnp.where(known[..., None], self.words[...][jnp.maximum(tokens, 0)], 0.0)
        return self.dropout(jnp.where(is_name[..., None], recency, word)).swapaxes(0, 1)

    def _classify(
        self, batch: TokenBatch, position: jax.Array, x: jax.Array, states: jax.Array
    ) -> jax.Array:
        """Logits of the relations and, last, of "no relation" for each name and the names after it.

        Args:
          batch: of token sequences.
          position: [B, M] of the names.
          x, states: [T, B, D] token vectors and [T, B, 2H] states of the BiLSTM.

        Returns:
          [A, B, M, 2, R + 1], for the relation of the second person to the first and vice versa.
        """
        at_name = states.swapaxes(0, 1)[jnp.arange(len(position))[:, None], position]  # [B, M, 2H]
        words = jnp.concatenate([states, x], axis=-1)
        zones = _zones(position, _following(position, self.max_distance, -1), len(x))
        inside = zones[1] & batch.mask[:, None]
        weight = inside / jnp.maximum(inside.sum(axis=-1, keepdims=True), 1)
        hidden = self.first(at_name) + _following(self.second(at_name), self.max_distance, 0)
        hidden += self.between(jnp.einsum("abmt,tbd->abmd", weight, words))
        hidden += self.distance[...][:, None, None]
        logits = self.out(self.dropout(nnx.relu(hidden)))
        return logits.reshape(*hidden.shape[:3], 2, -1) + self._word_logits(batch.tokens, zones)

    def _word_logits(self, tokens: jax.Array, zones: jax.Array) -> jax.Array:
        """Contribution of relation words in the zones [3, A, B, M, T], [A, B, M, 2, R + 1]."""
        is_word = tokens[..., None] == jnp.array(self.relation_words)  # [B, T, R]
        is_word = jnp.pad(is_word, ((0, 0), (0, 0), (0, 1)))  # "no relation" has no word
        found = jnp.einsum("zabmt,btr->zabmr", zones.astype(float), is_word.astype(float)) > 0
        weight = self.relation_word_weight[...]  # [3, 2]
        same = jnp.einsum("zabmr,zd->abmdr", found, weight)
        inverse = jnp.pad(INVERSES, (0, 1))
        return same + jnp.einsum("zabmr,zd,rs->abmds", found, weight[:, ::-1], inverse)


def _following(values: jax.Array, count: int, fill: float) -> jax.Array:
    """Values of the next names: [B, M, ...] -> [count, B, M, ...], `fill` after the last name."""
    after = ((0, 0), (0, count), *[(0, 0)] * (values.ndim - 2))
    padded = jnp.pad(values, after, constant_values=fill)
    names = values.shape[1]
    return jnp.stack([padded[:, d : d + names] for d in range(1, count + 1)])


def _zones(first: jax.Array, second: jax.Array, steps: int) -> jax.Array:
    """Masks of the tokens before, between (including both) and after two names.

    Args:
      first: [B, M] position of the first name.
      second: [A, B, M] position of the second name, -1 for none.
      steps: number of tokens T.

    Returns:
      Bool [3, A, B, M, T].
    """
    t, i, j = jnp.arange(steps), first[..., None], second[..., None]
    before, after = (i - WINDOW <= t) & (t < i), (j < t) & (t <= j + WINDOW)
    between = (i <= t) & (t <= j)
    zones = [jnp.broadcast_to(zone, between.shape) for zone in (before, between, after)]
    return jnp.stack(zones) & (j >= 0)


def _combine(probability: jax.Array, first: jax.Array, second: jax.Array, size: int) -> jax.Array:
    """Noisy or over the pairs of names of the same two people.

    Args:
      probability: [A, B, M, 2, R] of the second person to the first and vice versa.
      first, second: [B, M] and [A, B, M] position of the people within the story, -1 for none.
      size: number of people P of the largest story.

    Returns:
      [B, P, P, R], scaled to a sum of at most 1 over the relations.
    """
    is_pair = (first >= 0) & (second >= 0) & (first != second)  # [A, B, M]
    log_none = jnp.log1p(-jnp.minimum(probability, 0.9999)) * is_pair[..., None, None]
    # Index `size` is out of range and dropped.
    first, second = jnp.where(is_pair, first, size), jnp.where(is_pair, second, size)
    story = jnp.arange(first.shape[1])[:, None]
    total = jnp.zeros((len(story), size, size, probability.shape[-1]))
    total = total.at[story, first, second].add(log_none[..., 0, :], mode="drop")
    total = total.at[story, second, first].add(log_none[..., 1, :], mode="drop")
    combined = 1 - jnp.exp(total)
    return combined / jnp.maximum(combined.sum(axis=-1, keepdims=True), 1)
