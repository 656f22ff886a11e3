"""Neural compositional rule learning: recurrent attention over the chain of facts of the query.

Shapes: B stories, P people of the largest story, N people, L facts of the longest chain, R
relations, D dimension of the embeddings.
"""

import jax
import jax.numpy as jnp
import jraph
import optax
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import targets
from clutrr_jax.models.common import messages
from clutrr_jax.models.lstm import initial_weight, lstm
from clutrr_jax.models.setting import Setting

# The authors' code has no settings for CLUTRR. For knowledge graphs it has embeddings of dimension
# 1024, batches of up to 5,000 paths, and 1,500 steps with learning rate 2.5e-5 for each length.
SETTINGS = {  # replicas differ more with 64
    "embedding": Setting(128, "width of the embeddings and of the LSTM", at_least=1),
}
# With 1e-3 the loss has late peaks, and the training may end in one.
TRAIN = {"learning_rate": 5e-4, "steps": 3000, "patience": 1000}
MASKED = -1e9  # score of a window that does not exist
TIE = 1e-4  # subtracted per position: rounding never decides between equal windows


class NCRL(nnx.Module):
    """Neural compositional rule learning (Cheng, Ahmed and Sun 2023, arXiv 2303.03581).

    The input is the shortest chain of facts from the first to the second query person
    (`relation_chains`); all other facts are ignored. A fact against its direction has an embedding
    of its own. An LSTM encodes every window of two adjacent relations. The window with the highest
    score is replaced by an average of the embeddings of the R relations and of the window itself,
    which stands for a relation without a name. This is repeated until one window is left. The
    attention scores of the last window are the logits of the relations.

    In the authors' code the layer that scores the windows gets no gradient. Here it is trained: the
    forward pass selects one window, and gradients are those of the softmax over all windows
    (straight-through). Gradients reach all embeddings of the chain, and not only the selected
    window. All lengths are trained together, and not one after the other.

    If no chain connects the query people, all relations have the same logit.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        dim = config.embedding
        self.relations = sizes.relations
        # Relations, then inverse relations
        self.relation = nnx.Param(jax.random.normal(rngs.params(), (2 * self.relations, dim)))
        self.inputs = nnx.Linear(dim, 4 * dim, rngs=rngs)
        self.weight = nnx.Param(initial_weight(dim, rngs))
        # Biases of the score and the key would add a constant to all inputs of a softmax.
        self.window_score = nnx.Linear(dim, 1, use_bias=False, rngs=rngs)
        self.query = nnx.Linear(dim, dim, rngs=rngs)
        self.key = nnx.Linear(dim, dim, use_bias=False, rngs=rngs)

    def __call__(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Relation logits [B, R]."""
        return self.scores(*relation_chains(batch, self.relations))[:, :-1]

    def loss(self, batch: jraph.GraphsTuple) -> jax.Array:
        """Cross-entropy over the relations and "unknown", [B]."""
        scores = self.scores(*relation_chains(batch, self.relations))
        return optax.softmax_cross_entropy_with_integer_labels(scores, targets(batch)[0])

    def scores(self, types: jax.Array, length: jax.Array) -> jax.Array:
        """Scores of the relations and of "unknown", [B, R + 1], of chains of a number of relations
        [B]. `types` [B, L] are relations, plus R for an inverse relation; anything at padding."""
        exists = jnp.arange(types.shape[1]) < length[:, None]
        chain = self.relation[jnp.where(exists, types, 0)] * exists[..., None]  # [B, L, D]

        # The arrays become shorter with the chains.
        for longest in range(types.shape[1], 1, -1):
            window = self.encode(chain)  # [B, longest - 1, D]
            position = jnp.arange(longest - 1)
            score = self.window_score(window)[..., 0] - TIE * position
            weight = select(jnp.where(position < length[:, None] - 1, score, MASKED))
            is_last = (length == 2)[:, None, None]
            reduced = replace(chain, jnp.where(is_last, window, self.compose(window)), weight)
            chain = jnp.where(length[:, None, None] > 1, reduced, chain[:, :-1])
            length = jnp.where(length > 1, length - 1, length)
        return jnp.where(length[:, None] > 0, self.attend(chain[:, 0]), 0.0)

    def encode(self, chain: jax.Array) -> jax.Array:
        """Encodings of the windows, [B, L, D] -> [B, L - 1, D]."""
        gates = self.inputs(chain)
        pairs = jnp.stack([gates[:, :-1], gates[:, 1:]]).reshape(2, 1, -1, gates.shape[-1])
        hidden = lstm(pairs, self.weight[...][None], jnp.ones(pairs.shape[:-1]))[-1, 0]
        return hidden.reshape(len(chain), -1, chain.shape[-1])

    def attend(self, window: jax.Array) -> jax.Array:
        """Scores of the relations and of the window itself, [..., D] -> [..., R + 1]."""
        query = self.query(window) / window.shape[-1] ** 0.5
        known = query @ self.key(self.relation[: self.relations]).T
        unknown = (query * self.key(window)).sum(axis=-1, keepdims=True)
        return jnp.concatenate([known, unknown], axis=-1)

    def compose(self, window: jax.Array) -> jax.Array:
        """Average of the embeddings of the relations and the window itself, [..., D]."""
        weight = nnx.softmax(self.attend(window))
        return weight[..., :-1] @ self.relation[: self.relations] + weight[..., -1:] * window


def select(score: jax.Array) -> jax.Array:
    """One-hot vector of the highest score, with the gradient of the softmax, [..., W]."""
    soft = nnx.softmax(score)
    hard = jax.nn.one_hot(score.argmax(axis=-1), score.shape[-1])
    return soft - jax.lax.stop_gradient(soft) + hard


def replace(chain: jax.Array, composed: jax.Array, weight: jax.Array) -> jax.Array:
    """Chains [B, L, D] with one window replaced by its composition, [B, L - 1, D] each; the average
    over all windows if several have a weight, [B, L - 1]."""
    here = weight[..., None]
    earlier = jnp.cumsum(here, axis=1) - here  # weight of the windows further to the left
    return (1 - earlier - here) * chain[:, :-1] + here * composed + earlier * chain[:, 1:]


def relation_chains(batch: jraph.GraphsTuple, relations: int) -> tuple[jax.Array, jax.Array]:
    """Shortest chains of stated facts from the first to the second query person.

    Facts may be followed in both directions. If several chains are shortest, the result is the one
    whose sequence of relations comes first in lexicographic order, so the order of people and
    facts does not matter.

    Returns relations [B, L], plus R for a fact against its direction and 2R at padding, and lengths
    [B], 0 if there is no chain. L is P - 1, but at least 2.
    """
    edges = messages(batch, relations, "both")
    is_stated = jnp.tile(batch.edges["relation"] < relations, 2)
    story, query = batch.nodes["story"], batch.globals["query"][:-1]
    nodes, size, padding = len(story), batch.globals["people"].shape[1], 2 * relations

    def approach(distance, _):
        via = jnp.where(is_stated, distance[edges.receivers] + 1, nodes)
        return jnp.minimum(distance, jax.ops.segment_min(via, edges.senders, nodes)), None

    # Distance of each person to the second query person; N if there is no chain.
    distance = jnp.full(nodes, nodes).at[query[:, 1]].set(0)
    distance, _ = jax.lax.scan(approach, distance, length=size - 1)
    is_nearer = is_stated & (distance[edges.receivers] < distance[edges.senders])
    owner = story[edges.senders]

    def follow(people, _):
        """People that the chosen relations lead to, and the next relation."""
        types = jnp.where(is_nearer & people[edges.senders], edges.types, padding)
        chosen = jax.ops.segment_min(types, owner, len(batch.n_node))
        chosen = jnp.minimum(chosen, padding)  # stories without facts
        is_taken = (types == chosen[owner]) & (types < padding)
        return jnp.zeros(nodes, bool).at[edges.receivers].max(is_taken), chosen[:-1]

    people = jnp.zeros(nodes, bool).at[query[:, 0]].set(True)
    _, types = jax.lax.scan(follow, people, length=max(size - 1, 2))
    return types.T, (types < padding).sum(axis=0)
