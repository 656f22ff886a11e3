"""Transformers trained from scratch, over the tokens, the facts or the people of a story.

Shapes: B stories, T tokens, D state dimension, K heads, L kinds of relations between tokens, N
nodes, F facts of a story, P people of the largest story.
"""

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.models import reader
from clutrr_jax.models.common import (
    READOUT,
    WORD_DROPOUT,
    EntityEmbedding,
    Readout,
    check_heads,
    dropout,
    pair_index,
    query_positions,
)
from clutrr_jax.models.lstm import TokenEmbedding
from clutrr_jax.models.setting import Setting

# Layers and loops were compared on generated stories, few or with noise facts.
SETTINGS = {
    "dim": Setting(64, "width of the state of a token", at_least=1),
    "heads": Setting(4, "attention heads, a divisor of dim", at_least=1),
    "layers": Setting(1, "layers with weights of their own", at_least=1),
    "loops": Setting(4, "times that all layers are applied, with shared weights", at_least=1),
    "test_loops": Setting(0, "loops in tests and on dev stories; 0: as in training", at_least=0),
    "dropout": dropout(0.1),
}
RELATION_SETTINGS = SETTINGS | {
    "layers": SETTINGS["layers"]._replace(default=2),
    "loops": SETTINGS["loops"]._replace(default=1),
    "readout": READOUT,
}
TOKEN_SETTINGS = RELATION_SETTINGS | {
    "positions": Setting(
        "relative", "distances between tokens, or none: a bag of words",
        choices=("none", "relative"),
    ),
    "dropout": dropout(0.2),
    "word_dropout": WORD_DROPOUT,
}  # fmt: skip
TRAIN = {"steps": 5000, "grad_clip_norm": 1.0}
TOKEN_TRAIN = reader.TRAIN | {"grad_clip_norm": 1.0}
WIDENING = 4  # of the feed-forward layer
FARTHEST = 8  # longer distances between tokens count as this one


class Attention(nnx.Module):
    """Multi-head attention (Vaswani et al. 2017, arXiv 1706.03762), which also sees relations
    between the tokens (Shaw et al. 2018, arXiv 1803.02155, equations 3 and 4).

    A relation has two vectors for each head, one that is added to the key of the token attended
    to, and one that is added to its value.
    """

    def __init__(self, config, relations: int, *, rngs: nnx.Rngs):
        """`relations` is the number of kinds L; 0 is plain attention."""
        check_heads(config, "dim")
        self.heads, size = config.heads, config.dim // config.heads
        self.project = nnx.Linear(config.dim, 3 * config.dim, use_bias=False, rngs=rngs)
        self.out = nnx.Linear(config.dim, config.dim, rngs=rngs)
        if relations:
            shape = (2, relations, config.heads, size)
            self.table = nnx.Param(jax.random.normal(rngs.params(), shape) / size**0.5)

    def __call__(self, x: jax.Array, mask: jax.Array, relation: jax.Array | None) -> jax.Array:
        """States [B, T, D], mask [B, T], weight of each relation from a token to another
        [B or 1, T, T, L] -> [B, T, D]."""
        heads = self.project(x).reshape(*x.shape[:2], 3, self.heads, -1)
        query, key, value = (heads[:, :, part] for part in range(3))  # [B, T, K, D / K]
        score = jnp.einsum("btkd,bskd->bkts", query, key)
        if relation is not None:
            of_key, of_value = self.table[...]
            by_kind = jnp.einsum("btkd,lkd->btkl", query, of_key)
            score += jnp.einsum("btkl,btsl->bkts", by_kind, relation)
        score = jnp.where(mask[:, None, None], score / query.shape[-1] ** 0.5, -1e9)
        weight = nnx.softmax(score)  # [B, K, T, T]
        found = jnp.einsum("bkts,bskd->btkd", weight, value)
        if relation is not None:
            by_kind = jnp.einsum("bkts,btsl->btkl", weight, relation)
            found += jnp.einsum("btkl,lkd->btkd", by_kind, of_value)
        return self.out(found.reshape(x.shape))


class Layer(nnx.Module):
    """Attention and a feed-forward layer, each with a normalization before it and a residual
    connection around it. A dropout mask serves all tokens of a story."""

    def __init__(self, config, relations: int, *, rngs: nnx.Rngs):
        dim = config.dim
        self.norm = nnx.LayerNorm(dim, rngs=rngs)
        self.attention = Attention(config, relations, rngs=rngs)
        self.wide_norm = nnx.LayerNorm(dim, rngs=rngs)
        self.wide = nnx.Linear(dim, WIDENING * dim, rngs=rngs)
        self.narrow = nnx.Linear(WIDENING * dim, dim, rngs=rngs)
        self.dropout = nnx.Dropout(config.dropout, broadcast_dims=(1,), rngs=rngs)

    def __call__(self, x: jax.Array, mask: jax.Array, relation: jax.Array | None) -> jax.Array:
        """As `Attention`."""
        x = x + self.dropout(self.attention(self.norm(x), mask, relation))
        return x + self.dropout(self.narrow(nnx.relu(self.wide(self.wide_norm(x)))))


class Encoder(nnx.Module):
    """Layers that are applied `loops` times (Dehghani et al. 2019, arXiv 1807.03819, without
    embeddings of the steps and adaptive halting), and a last normalization."""

    def __init__(self, config, relations: int = 0, *, rngs: nnx.Rngs):
        self.loops, self.test_loops = config.loops, config.test_loops or config.loops
        self.deterministic = False  # True in tests, as of layers with dropout
        self.layers = nnx.List(Layer(config, relations, rngs=rngs) for _ in range(config.layers))
        self.norm = nnx.LayerNorm(config.dim, rngs=rngs)

    def __call__(
        self, x: jax.Array, mask: jax.Array, relation: jax.Array | None = None
    ) -> jax.Array:
        """As `Attention`."""
        for _ in range(self.test_loops if self.deterministic else self.loops):
            for layer in self.layers:
                x = layer(x, mask, relation)
        return self.norm(x)


class Transformer(nnx.Module):
    """Transformer over the tokens of a story, with relative positions as in Shaw et al. 2018.

    The story vector is the mean state, and the vector of a person the mean of the states at their
    mentions.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.relative, self.dim = config.positions == "relative", config.dim
        self.embed = TokenEmbedding(sizes, config.dim, config.word_dropout, rngs=rngs)
        self.encoder = Encoder(config, (2 * FARTHEST + 1) * self.relative, rngs=rngs)
        self.readout = Readout(3 * config.dim, config, sizes, rngs=rngs)

    def __call__(self, batch: TokenBatch) -> jax.Array:
        """Relation logits [B, relations]."""
        relation = distances(batch.tokens.shape[1])[None] if self.relative else None
        x = self.encoder(self.embed(batch.tokens) * self.dim**0.5, batch.mask, relation)
        weight = batch.mask / jnp.maximum(batch.mask.sum(axis=1, keepdims=True), 1)
        story = jnp.einsum("bt,btd->bd", weight, x)
        return self.readout(story, *reader.query_states(batch, x.swapaxes(0, 1)))


def distances(tokens: int) -> jax.Array:
    """Clipped distance from each token to each other one, one-hot [T, T, L]."""
    index = jnp.arange(tokens)
    clipped = jnp.clip(index - index[:, None], -FARTHEST, FARTHEST)
    return jax.nn.one_hot(clipped + FARTHEST, 2 * FARTHEST + 1)


class TransformerFacts(nnx.Module):
    """Transformer over facts as tokens, without positions.

    The token of a fact (X, r, Y) is a linear map of the vectors of X, r and Y, where people have
    random vectors. The query is one more fact, whose relation has a vector of its own; the answer
    is predicted from its last state.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        dim = config.dim
        self.query, self.dim = sizes.edge_types, dim
        self.entity = EntityEmbedding(sizes.entities, dim, rngs=rngs)
        shape = (sizes.edge_types + 1, dim)
        self.relation = nnx.Param(jax.random.normal(rngs.params(), shape) / dim**0.5)
        self.token = nnx.Linear(3 * dim, dim, rngs=rngs)
        self.encoder = Encoder(config, rngs=rngs)
        self.out = nnx.Linear(dim, sizes.relations, rngs=rngs)

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Relation logits [B, relations]."""
        facts, query = batch.globals["facts"][:-1], batch.globals["query"][:-1]  # [B, F], [B, 2]
        is_fact = jnp.arange(facts.shape[1]) < batch.n_edge[:-1, None]

        def with_query(of_query: jax.Array, of_facts: jax.Array) -> jax.Array:
            return jnp.concatenate([of_query[:, None], of_facts], axis=1)  # [B, F + 1]

        asked = jnp.full(len(query), self.query)
        types = with_query(asked, batch.edges["relation"][facts])
        first, second = (
            self.entity(batch.nodes["entity"][with_query(query[:, side], nodes[facts])])
            for side, nodes in enumerate((batch.senders, batch.receivers))
        )
        x = jnp.concatenate([first, self.relation[...][types], second], axis=-1)
        x = self.token(x * self.dim**0.5)
        x = self.encoder(x, with_query(jnp.ones(len(query), bool), is_fact))
        return self.out(x[:, 0])


class RAT(nnx.Module):
    """Relation-aware Transformer (Wang et al. 2020, arXiv 1911.04942) over the people of a story,
    the baseline of Bergen et al. 2021.

    The relation from a person to another is the stated one, or the reverse of the stated one, or
    none; that of a person to themselves is one more. Several facts about a pair are averaged.
    People have no identity, but the query people have vectors of their own.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.edge_types = sizes.edge_types
        start = jax.random.normal(rngs.params(), (3, config.dim))
        self.start = nnx.Param(start)  # of the first and the second query person, and of others
        self.encoder = Encoder(config, 2 * sizes.edge_types + 1, rngs=rngs)
        self.readout = Readout(3 * config.dim, config, sizes, rngs=rngs)

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Relation logits [B, relations]."""
        stories, size = batch.globals["people"][:-1].shape
        is_person = jnp.arange(size) < batch.n_node[:-1, None]  # [B, P]
        query, row = query_positions(batch), jnp.arange(stories)
        role = jnp.full((stories, size), 2).at[row, query[1]].set(1).at[row, query[0]].set(0)
        x = self.encoder(self.start[...][role], is_person, self.relations(batch))
        story = (x * is_person[..., None]).sum(axis=1) / jnp.maximum(batch.n_node[:-1, None], 1)
        return self.readout(story, x[row, query[0]], x[row, query[1]])

    def relations(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Weight of each relation from a person to another, [B, P, P, L]."""
        stories, size = batch.globals["people"][:-1].shape
        counts = jnp.zeros((stories, size, size, self.edge_types))
        # Edges of the padding graph are out of range and dropped.
        counts = counts.at[*pair_index(batch), batch.edges["relation"]].add(1, mode="drop")
        own = jnp.broadcast_to(jnp.eye(size)[..., None], (stories, size, size, 1))
        counts = jnp.concatenate([counts, counts.swapaxes(1, 2), own], axis=-1)
        return counts / jnp.maximum(counts.sum(axis=-1, keepdims=True), 1)
