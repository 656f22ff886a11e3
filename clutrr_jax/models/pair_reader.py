"""From a story to what it says of each pair of people.

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
    "pair": 128,  # hidden dimension of what two names are read by
    "dropout": 0.3,
    "word_dropout": 0.1,  # share of the words made unknown in training; not of a frozen BERT's
    "reach": 2,  # names that are further apart say nothing; with 2, .998 of the facts are in reach
    "nothing": 2.0,  # logit of "says nothing" at the start
    "names": 4.0,  # what the word "daughter" adds to the logit of daughter at the start
    "matmul_dtype": "bfloat16",  # of the inputs of the LSTMs in training; tested in float32
}
# [R, R]: 1 where the second may be what X is to Y if the first is what Y is to X.
INVERSES = (INVERSE[PREDICATE_OF][:, None] == PREDICATE_OF).astype(np.float32)
AGAIN = 3  # names back that a name's person is looked for
AROUND = 4  # tokens before and after two names in which a relation's own name is looked for


class PairReader(nnx.Module):
    """A BiLSTM over the story, then a layer that tells from the states at two names near each other
    what their people are to each other. Where several pairs of names are of the same two people,
    it is enough that one says it (noisy or).

    People have no identity: a name is told from others by whether its person was named just before,
    so that renaming people changes nothing. A relation whose own name stands near is likelier from
    the start, and so are, the other way round, its inverses: the parents, for "daughter". This is
    what ties what is read to the names of the answers: relations that were mere numbers could be
    exchanged with each other, or stand for "father or mother", as far as the answers tell.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.reach, self.relations = config.reach, sizes.relations
        self.relation_words = sizes.relation_words
        self.first_word = FIRST_ENTITY + sizes.entities

        def vectors(count: int) -> nnx.Param:
            return nnx.Param(jax.random.normal(rngs.params(), (count, config.embedding)) / 2)

        self.frozen = sizes.states > 0
        if self.frozen:
            self.states = nnx.Linear(sizes.states, config.embedding, rngs=rngs)
        else:
            self.words = vectors(sizes.tokens - self.first_word)
        self.people = vectors(AGAIN + 1)
        self.keep = nnx.Dropout(config.word_dropout, rngs=rngs)
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)
        width = 2 * config.hidden
        dims = [config.embedding] + [width] * (config.layers - 1)
        self.layers = nnx.List(
            BiLSTM(dim, config.hidden, config.matmul_dtype, rngs=rngs) for dim in dims
        )
        self.first = nnx.Linear(width, config.pair, use_bias=False, rngs=rngs)
        self.second = nnx.Linear(width, config.pair, use_bias=False, rngs=rngs)
        self.between = nnx.Linear(width + config.embedding, config.pair, use_bias=False, rngs=rngs)
        self.distance = nnx.Param(jnp.zeros((config.reach, config.pair)))
        bias = jnp.zeros((2, sizes.relations + 1)).at[:, -1].set(config.nothing).reshape(-1)
        self.out = nnx.Linear(config.pair, len(bias), bias_init=lambda *_: bias, rngs=rngs)
        # Before, between and after two names; whether the word tells what the second of them is to
        # the first, as "his wife" in between more often does, or what the first is to the second.
        start = jnp.array([[0.3, 0.3], [1.0, 0.25], [0.3, 0.3]])
        self.name_weight = nnx.Param(config.names * start)

    def __call__(self, batch: TokenBatch) -> jax.Array:
        """The chance of each relation for each ordered pair of people; what is missing to 1 is that
        nothing is said. [B, P, P, R]."""
        rows, steps = jnp.arange(len(batch.tokens))[:, None], batch.tokens.shape[1]
        place = jnp.minimum(batch.named, steps - 1)
        number = jnp.where(batch.named < steps, batch.tokens[rows, place], PAD) - FIRST_ENTITY
        is_person = number[..., None] == batch.people[:, None]  # [B, M, P]
        who = jnp.where(is_person.any(axis=-1), is_person.argmax(axis=-1), -1)  # [B, M]

        x = self._embed(batch, who)  # [T, B, D]
        states = x
        for layer in self.layers:
            states = self.dropout(layer(states, batch.mask.T))
        at_name = states.swapaxes(0, 1)[rows, place]  # [B, M, 2H]
        words = jnp.concatenate([states, x], axis=-1)
        near = batch.tokens[..., None] == jnp.array(self.relation_words)  # [B, T, R]
        near = jnp.concatenate([near, jnp.zeros_like(near[..., :1])], axis=-1).astype(x.dtype)

        # From each name to the one `apart` names ahead, [A, B, M, ...].
        def ahead(a: jax.Array, missing: float) -> jax.Array:
            after = ((0, 0), (0, self.reach), *[(0, 0)] * (a.ndim - 2))
            padded = jnp.pad(a, after, constant_values=missing)
            names = a.shape[1]
            return jnp.stack([padded[:, d : d + names] for d in range(1, self.reach + 1)])

        other = ahead(who, -1)
        zones = _zones(place, ahead(place, -1), steps)  # [3, A, B, M, T]
        inside = zones[1] & batch.mask[:, None]
        weight = inside / jnp.maximum(inside.sum(axis=-1, keepdims=True), 1)
        hidden = self.first(at_name) + ahead(self.second(at_name), 0)
        hidden += self.between(jnp.einsum("abmt,tbd->abmd", weight, words))
        hidden += self.distance[...][:, None, None]
        logits = self.out(self.dropout(nnx.relu(hidden))).reshape(*other.shape, 2, -1)
        named = jnp.einsum("zabmt,btr->zabmr", zones.astype(x.dtype), near) > 0
        weight = self.name_weight[...]
        inverse = jnp.pad(INVERSES, (0, 1))  # of nothing there is none
        logits += jnp.einsum("zabmr,zd->abmdr", named, weight)
        logits += jnp.einsum("zabmr,zd,rs->abmds", named, weight[:, ::-1], inverse)
        chance = nnx.softmax(logits)[..., :-1]  # [A, B, M, 2, R]
        both = (who >= 0) & (other >= 0) & (who != other)  # [A, B, M]
        silent = jnp.log1p(-jnp.minimum(chance, 0.9999)) * both[..., None, None]
        size = batch.people.shape[1]
        # Out of range where it is no pair, and so dropped.
        one, other = jnp.where(both, who, size), jnp.where(both, other, size)
        silence = jnp.zeros((len(who), size, size, self.relations))  # log of its chance
        silence = silence.at[rows, one, other].add(silent[..., 0, :], mode="drop")
        silence = silence.at[rows, other, one].add(silent[..., 1, :], mode="drop")
        said = 1 - jnp.exp(silence)
        return said / jnp.maximum(said.sum(axis=-1, keepdims=True), 1)

    def _embed(self, batch: TokenBatch, who: jax.Array) -> jax.Array:
        """The tokens as vectors, those of people by how many names ago the person was named last.
        [T, B, D]."""
        back = jnp.zeros_like(who)
        for apart in range(AGAIN, 0, -1):
            before = jnp.pad(who, ((0, 0), (apart, 0)), constant_values=-1)[:, :-apart]
            back = jnp.where(before == who, apart, back)
        steps = batch.tokens.shape[1]
        is_name = (jnp.arange(steps) == batch.named[..., None]).any(axis=1)  # [B, T]
        name = jnp.maximum(jnp.cumsum(is_name, axis=1) - 1, 0)
        person = self.people[...][jnp.take_along_axis(back, name, axis=1)]  # [B, T, D]
        if self.frozen:
            assert batch.states is not None
            word = self.states(batch.states)
        else:
            tokens = batch.tokens - self.first_word
            known = (tokens >= 0) & (self.keep(jnp.ones(tokens.shape)) > 0)
            word = jnp.where(known[..., None], self.words[...][jnp.maximum(tokens, 0)], 0.0)
        return self.dropout(jnp.where(is_name[..., None], person, word)).swapaxes(0, 1)


def _zones(first: jax.Array, second: jax.Array, steps: int) -> jax.Array:
    """Which tokens are before, between and after two names at the places [B, M] and [A, B, M], and
    near them; a place of -1 is none. [3, A, B, M, T]."""
    t, i, j = jnp.arange(steps), first[..., None], second[..., None]
    before, after = (i - AROUND <= t) & (t < i), (j < t) & (t <= j + AROUND)
    inside = (i <= t) & (t <= j)  # the names too
    return jnp.stack([jnp.broadcast_to(z, inside.shape) for z in (before, inside, after)]) & (
        j >= 0
    )
