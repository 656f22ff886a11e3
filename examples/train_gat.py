"""A training loop of your own in one file: a graph attention network, several seeds in one program.

    python examples/train_gat.py
    python examples/train_gat.py --data data_089907f8.zip

Trains on stories of k = 2, 3 and tests on k = 2..10, by default generated ones, in about a minute
on two cores. Prints the accuracy for each k next to baselines. Expected result: 1.00 for k = 2, 3,
and less and less after it, because the network does not learn the rules.

Shapes: R replicas, B stories, N people, E messages (facts, and one from each person to itself),
H hidden units, K attention heads.
"""

import argparse
from collections.abc import Iterator
from itertools import count, islice

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import optax

import clutrr_jax

HIDDEN, HEADS, LAYERS = 64, 4, 6
BATCH, LEARNING_RATE = 100, 1e-3
RELATIONS = len(clutrr_jax.RELATIONS)
EDGE_TYPES = RELATIONS + 2  # also: a noise fact whose relation has no name, a message to oneself

optimizer = optax.chain(optax.clip_by_global_norm(5.0), optax.adam(LEARNING_RATE))


def init(key: jax.Array) -> dict:
    """Parameters of one replica."""
    glorot = jax.nn.initializers.glorot_uniform()
    keys = iter(jax.random.split(key, 3 * LAYERS + 3))

    def layer() -> dict:
        return {
            "person": glorot(next(keys), (HIDDEN, HIDDEN)),
            "relation": glorot(next(keys), (EDGE_TYPES, HIDDEN)),
            "attend": glorot(next(keys), (3, HEADS, HIDDEN // HEADS)),
        }

    return {
        "start": glorot(next(keys), (3, HIDDEN)),
        "layers": [layer() for _ in range(LAYERS)],
        "hidden": glorot(next(keys), (3 * HIDDEN, 2 * HIDDEN)),
        "out": glorot(next(keys), (2 * HIDDEN, RELATIONS)),
    }


def gat(params: dict, batch: jraph.GraphsTuple) -> jax.Array:
    """Relation logits [B, RELATIONS]. The last graph of a batch is padding."""
    people = len(batch.nodes["story"])
    first, second = batch.globals["query"][:-1].T  # [B] each
    role = jnp.zeros(people, int).at[first].set(1).at[second].set(2)
    x = params["start"][role]  # [N, H]

    everyone = jnp.arange(people)
    to_self = jnp.full(people, EDGE_TYPES - 1)
    senders = jnp.concatenate([batch.senders, everyone])  # [E]
    receivers = jnp.concatenate([batch.receivers, everyone])
    relations = jnp.concatenate([batch.edges["relation"], to_self])
    for layer in params["layers"]:
        person = (x @ layer["person"]).reshape(people, HEADS, -1)  # [N, K, H/K]
        relation = layer["relation"].reshape(EDGE_TYPES, HEADS, -1)
        # The logit of a message is a sum over its receiver, sender and relation.
        receive, send, relate = layer["attend"]
        logit = (person * receive).sum(-1)[receivers]  # [E, K]
        logit += (person * send).sum(-1)[senders] + (relation * relate).sum(-1)[relations]
        weight = jraph.segment_softmax(jax.nn.leaky_relu(logit, 0.2), receivers, people)
        message = weight[..., None] * (person[senders] + relation[relations])  # [E, K, H/K]
        x = jax.nn.elu(jraph.segment_sum(message, receivers, people).reshape(people, HIDDEN))

    story = jraph.segment_sum(x, batch.nodes["story"], len(batch.n_node))[:-1]  # [B, H]
    pooled = jnp.concatenate([story, x[first], x[second]], axis=1)
    return jax.nn.relu(pooled @ params["hidden"]) @ params["out"]


def loss_fn(params: dict, batch: jraph.GraphsTuple) -> jax.Array:
    """Mean cross-entropy of the stories that are not padding."""
    target, mask = clutrr_jax.targets(batch)
    losses = optax.softmax_cross_entropy_with_integer_labels(gat(params, batch), target)
    return jnp.mean(losses, where=mask)


def train_step(params: dict, state: optax.OptState, batch: jraph.GraphsTuple) -> tuple:
    """One step of one replica. Returns its parameters, the state of the optimizer and the loss."""
    loss, gradient = jax.value_and_grad(loss_fn)(params, batch)
    updates, state = optimizer.update(gradient, state)
    return optax.apply_updates(params, updates), state, loss


def predict(params: dict, batch: jraph.GraphsTuple) -> jax.Array:
    """Relation ids [B] of one replica."""
    return gat(params, batch).argmax(axis=-1)


# All replicas in one program. They read the same batches, and differ in their parameters.
train_steps = jax.jit(jax.vmap(train_step, in_axes=(0, 0, None)), donate_argnums=(0, 1))
predictions = jax.jit(jax.vmap(predict, in_axes=(0, None)))


def endless(stories) -> Iterator[jraph.GraphsTuple]:
    """Batches of one epoch after the other, each in another order."""
    for epoch in count():
        yield from clutrr_jax.batches(stories, "graph", BATCH, seed=epoch)


def train(stories, steps: int, replicas: int) -> dict:
    """Parameters of all replicas, arrays [R, ...]."""
    params = jax.vmap(init)(jax.random.split(jax.random.key(0), replicas))
    state = jax.vmap(optimizer.init)(params)
    for step, batch in enumerate(islice(endless(stories), steps), start=1):
        params, state, loss = train_steps(params, state, batch)
        if step % 100 == 0:
            print(f"step {step}: loss", *(f"{value:.4f}" for value in loss), flush=True)
    return params


def test(params: dict, stories) -> np.ndarray:
    """Predicted relation ids in the order of the stories, [R, S]."""
    found = []
    for batch in clutrr_jax.batches(stories, "graph", BATCH):
        mask = np.asarray(clutrr_jax.targets(batch)[1])
        found.append(np.asarray(predictions(params, batch))[:, mask])
    return np.concatenate(found, axis=1)


def main(argv: list[str] | None = None) -> clutrr_jax.Evaluation:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="FILE", help="a released data set, or your own")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--replicas", type=int, default=3)
    args = parser.parse_args(argv)
    dataset = clutrr_jax.load(args.data) if args.data else clutrr_jax.generate(train_rows=2500)
    print(f"Train on {dataset.train}, test on {dataset.test}.")
    params = train(dataset.train, args.steps, args.replicas)
    return clutrr_jax.evaluate({"my GAT": test(params, dataset.test)}, dataset)


if __name__ == "__main__":
    print(main())
