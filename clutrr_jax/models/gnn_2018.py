"""Message passing over a graph extracted from the text (Sinha et al. 2018).

Shapes: B stories, T tokens, E = T // 2 edges of a story, P entities of the pool, D embedding
dimension, H node dimension.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import jraph
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.data.vocabulary import FIRST_ENTITY
from clutrr_jax.models.common import READOUT, WORD_DROPOUT, EntityEmbedding, Readout, dropout
from clutrr_jax.models.lstm import TokenEmbedding
from clutrr_jax.models.reader import is_any_of
from clutrr_jax.models.setting import Setting

# Sinha et al. 2018, section 4. Readout and the two dropout rates are not in the paper.
SETTINGS = {
    "embedding": Setting(100, "width of the embeddings of tokens", at_least=1),
    "node": Setting(100, "width of the nodes", at_least=1),
    "rounds": Setting(6, "rounds of messages", at_least=1),
    "readout": READOUT,
    "dropout": dropout(0.3),
    "word_dropout": WORD_DROPOUT,
}
OWN_POSITION = 5  # width of the fixed random vector of each person
SHARED_POSITION = 10  # width of the learned vector that all people share


class Gaps(NamedTuple):
    """Word spans between consecutive mentions of two different people in the same sentence."""

    first: jax.Array  # [B, E] entity id of the person before
    second: jax.Array  # [B, E] entity id of the person after
    start: jax.Array  # [B, E] position of the first word
    end: jax.Array  # [B, E] position after the last word
    mask: jax.Array  # [B, E] False at padding


def find_gaps(batch: TokenBatch, sizes: Sizes) -> Gaps:
    """Gaps of each story in the order of the text.

    Every gap has at least one word, so that a story of T tokens has at most T // 2 of them.
    """
    tokens, (_, steps) = batch.tokens, batch.tokens.shape
    person = tokens - FIRST_ENTITY
    is_person = (person >= 0) & (person < sizes.entities)
    position = jnp.arange(steps)
    # Position of the last mention before each token, or -1.
    before = jax.lax.cummax(jnp.where(is_person, position, -1), axis=1)
    before = jnp.pad(before, ((0, 0), (1, 0)), constant_values=-1)[:, :-1]
    ends = jnp.cumsum(is_any_of(tokens, sizes.sentence_ends), axis=1)

    def at_mention(values: jax.Array) -> jax.Array:
        """Value at the last mention before each token, [B, T] -> [B, T]."""
        return jnp.take_along_axis(values, jnp.maximum(before, 0), axis=1)

    found = (
        is_person
        & (before >= 0)
        & (position - before > 1)
        & (at_mention(person) != person)
        & (at_mention(ends) == ends)
    )
    # Positions of the second mention of each gap, in order, followed by other positions.
    second = jnp.argsort(~found, axis=1, stable=True)[:, : steps // 2]  # [B, E]

    def pick(values: jax.Array) -> jax.Array:
        return jnp.take_along_axis(values, second, axis=1)

    mask = pick(found)
    return Gaps(
        first=jnp.where(mask, pick(at_mention(person)), 0),
        second=jnp.where(mask, pick(person), 0),
        start=pick(before) + 1,
        end=second,
        mask=mask,
    )


def maximum(words: jax.Array, gaps: Gaps) -> jax.Array:
    """Maximum of each feature over the words of a gap: [B, T, D] -> [B, E, D]."""
    rows = jnp.arange(len(words))[:, None]
    steps = words.shape[1]
    starts = jnp.zeros((len(words), steps), bool)
    starts = starts.at[rows, jnp.where(gaps.mask, gaps.start, steps)].set(True, mode="drop")

    def step(largest, now):
        word, start = now
        largest = jnp.where(start[:, None], word, jnp.maximum(largest, word))
        return largest, largest

    swapped = words.swapaxes(0, 1)
    running = jax.lax.scan(step, swapped[0], (swapped, starts.T))[1]  # [T, B, D]
    return running[jnp.maximum(gaps.end - 1, 0), rows] * gaps.mask[..., None]


class GNN2018(nnx.Module):
    """Graph network of Sinha et al. 2018, section 3.3. Nodes receive the mean of the messages.

    The words between two mentions in a sentence form an edge between the two people, with messages
    in both directions. The edge is the maximum of their embeddings plus a learned vector per
    direction; without it, the order of the two people would make no difference. The message of
    equation 1 is the same in every round; its attention weight and the state of the receiving LSTM
    change.
    """

    attends = False

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        self.sizes = sizes
        self.rounds, self.node = config.rounds, config.node
        self.embed = TokenEmbedding(sizes, config.embedding, config.word_dropout, rngs=rngs)
        normal = nnx.initializers.normal(config.embedding**-0.5)
        self.direction = nnx.Param(normal(rngs.params(), (2, config.embedding)))
        self.own_position = EntityEmbedding(sizes.entities, OWN_POSITION, rngs=rngs)
        self.shared_position = nnx.Param(normal(rngs.params(), (SHARED_POSITION,)))
        position = OWN_POSITION + SHARED_POSITION
        self.inputs = nnx.Linear(config.embedding + 2 * position, 4 * config.node, rngs=rngs)
        orthogonal = nnx.initializers.orthogonal()
        self.weight = nnx.Param(orthogonal(rngs.params(), (config.node, 4 * config.node)))
        if self.attends:
            self.to = nnx.Linear(config.node + position, config.node, rngs=rngs)
            self.source = nnx.Linear(config.node, config.node, use_bias=False, rngs=rngs)
            self.score = nnx.Linear(config.node, 1, use_bias=False, rngs=rngs)
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)
        self.readout = Readout(3 * config.node, config, sizes, rngs=rngs)

    def __call__(self, batch: TokenBatch) -> jax.Array:
        """Relation logits [B, relations]."""
        rows, people = len(batch.tokens), self.sizes.entities
        gaps = find_gaps(batch, self.sizes)
        edge = maximum(self.dropout(self.embed(batch.tokens)), gaps)  # [B, E, D]

        # All stories form one graph of B P nodes; padding edges connect one additional node.
        def node(person: jax.Array) -> jax.Array:
            index = person + people * jnp.arange(rows)[:, None]
            return jnp.where(gaps.mask, index, rows * people).reshape(-1)

        first, second = node(gaps.first), node(gaps.second)
        senders, receivers = jnp.concatenate([first, second]), jnp.concatenate([second, first])
        edge = edge.reshape(len(first), -1) + self.direction[...][:, None]  # [2, B E, D]
        own = jnp.pad(jnp.tile(self.own_position.table[...], (rows, 1)), ((0, 1), (0, 0)))
        shared = jnp.broadcast_to(self.shared_position[...], (len(own), SHARED_POSITION))
        position = jnp.concatenate([own, shared], axis=-1)  # [B P + 1, position], equation 1
        message = [edge.reshape(len(senders), -1), position[receivers], position[senders]]
        h = self.pass_messages(jnp.concatenate(message, axis=-1), position, senders, receivers)

        h = self.dropout(h[:-1].reshape(rows, people, -1))
        person = batch.tokens - FIRST_ENTITY
        mentioned = (person[..., None] == jnp.arange(people)).any(axis=1)  # [B, P]
        total = jnp.einsum("bp,bph->bh", mentioned.astype(h.dtype), h)
        story = total / jnp.maximum(mentioned.sum(axis=1, keepdims=True), 1)
        query = h[jnp.arange(rows)[:, None], batch.query]  # [B, 2, H]
        return self.readout(story, query[:, 0], query[:, 1])

    def pass_messages(self, message, position, senders, receivers) -> jax.Array:
        """Final node states [nodes, H], from messages [M, D + 2 * position dimension], positions of
        nodes, and senders and receivers [M]."""
        nodes = len(position)
        h = c = jnp.zeros((nodes, self.node))
        if not self.attends:
            count = jraph.segment_sum(jnp.ones(len(receivers)), receivers, nodes)
            weight = 1 / jnp.maximum(count, 1)[receivers]
            gates = self.gates(message, weight, receivers, nodes)
        for _ in range(self.rounds):
            if self.attends:
                to = self.to(jnp.concatenate([h, position], axis=-1))
                score = self.score(jnp.tanh(to[receivers] + self.source(h)[senders]))[:, 0]
                weight = jraph.segment_softmax(score, receivers, nodes)
                gates = self.gates(message, weight, receivers, nodes)
            i, f, g, o = jnp.split(gates + h @ self.weight[...], 4, axis=-1)
            c = nnx.sigmoid(f) * c + nnx.sigmoid(i) * jnp.tanh(g)
            h = nnx.sigmoid(o) * jnp.tanh(c)
        return h

    def gates(self, message, weight, receivers, nodes: int) -> jax.Array:
        """Contribution of the weighted messages to the receivers' LSTM gates, [nodes, 4 H]."""
        return self.inputs(jraph.segment_sum(message * weight[:, None], receivers, nodes))


class GNN2018Attention(GNN2018):
    """GNN2018 whose nodes attend to the messages."""

    attends = True
