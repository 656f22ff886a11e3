"""Batches of stories that are written as tokens."""

import jax.numpy as jnp
import numpy as np

from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.data.vocabulary import FIRST_ENTITY

PEOPLE = 4  # of the pool; the first word follows them


def batch_of(stories: list[list[int]], steps: int) -> TokenBatch:
    """Batch of stories of up to `steps` tokens with the query pair 0, 1, the fact that person 1 is
    relation 3 of person 0, and the target 0."""
    tokens = np.zeros((len(stories), steps), np.int32)
    for row, story in enumerate(stories):
        tokens[row, : len(story)] = story
    ids, query = jnp.array(tokens), jnp.tile(jnp.arange(2), (len(stories), 1))
    is_name = (tokens >= FIRST_ENTITY) & (tokens < FIRST_ENTITY + PEOPLE)
    return TokenBatch(
        tokens=ids,
        mask=ids > 0,
        query=query,
        mentions=ids[:, None] == query[:, :, None] + FIRST_ENTITY,
        target=jnp.zeros(len(stories), jnp.int32),
        row_mask=jnp.ones(len(stories), bool),
        people=jnp.tile(jnp.arange(PEOPLE), (len(stories), 1)),
        name_positions=jnp.sort(jnp.where(is_name, jnp.arange(steps), steps), axis=1),
        facts=jnp.array([[(0, 3, 1)] for _ in stories]),
    )
