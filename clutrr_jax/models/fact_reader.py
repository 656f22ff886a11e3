"""Reader that extracts the facts that the words of a story state about its people.

Shapes: B stories, T tokens, M names of people, P people of the largest story, D embedding
dimension, H hidden dimension of each direction, Q predicates, R relations.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from clutrr_jax.data.arrays import Sizes
from clutrr_jax.data.batching import TokenBatch
from clutrr_jax.data.vocabulary import FIRST_ENTITY, PAD
from clutrr_jax.models.common import WORD_DROPOUT, dropout
from clutrr_jax.models.lstm import BiLSTM
from clutrr_jax.models.reader import is_any_of
from clutrr_jax.models.setting import Setting
from generator.errors import InputError
from generator.relations.kinship import (
    GENDER_OF,
    INVERSE,
    KINSHIP,
    NUM_PREDICATES,
    PREDICATE_OF,
    RELATION_OF,
)

SETTINGS = {
    "embedding": Setting(64, "width of the embeddings of tokens", at_least=1),
    "hidden": Setting(64, "width of each direction of the BiLSTM", at_least=1),
    "layers": Setting(1, "layers of the BiLSTM", at_least=1),
    "key": Setting(64, "width in which words and names are compared", at_least=1),
    "dropout": dropout(0.3),  # of the inputs of each layer, and of the features of the words
    # Over a pretrained encoder it has no effect.
    "word_dropout": WORD_DROPOUT._replace(default=0.1),
    "relation_word_prior": Setting(
        8.0, "initially added to the logits of a word for a relation", at_least=0, sweeps=True
    ),
    "relation_word_penalty": Setting(
        0.02,
        "on the negative log-probability that such a word has its predicate",
        at_least=0,
        sweeps=True,
    ),
    "syntax_prior": Setting(
        3.0,
        'initial logit of the holder that the grammar suggests, as in "Ann\'s uncle"',
        at_least=0,
        sweeps=True,
    ),
}
SILENT = -5.0  # initial logit of any other word to state a fact
RECENT = 3  # names back to look for an earlier mention of the same person
NEAR = 4  # names before and after a word that it may be about
FARTHER = -2.0  # initial logit of a name, for each name between it and the word
OTHER_SENTENCE = -3.0  # the same for each end of a sentence between them, up to two


class FactReader(nnx.Module):
    """BiLSTM over the story; every word may state one fact about two people near it.

    For each word, the reader predicts whether it states a fact, the predicate and gender that it
    names, and which person has this relation ("bearer") to which other one ("holder"): in "Ann's
    uncle Bob", "uncle" states that Bob is an uncle of Ann. Roles do not depend on the relation:
    what the reader learns about "A has a sister B" holds for "A has an uncle B". A fact also holds
    in the inverse direction, and genders are a property of people.

    Without these ties, training from answers alone ends with readers and rules that exchange
    relations with each other. For the same reason the names of the relations initially state them,
    and the holder is initially preferred next to "of", "has" or a possessive: if all facts are read
    in the inverse direction, other rules explain the stories of two facts just as well.

    People have no identity. The embedding of a name depends only on how many names ago the same
    person was named, so that renaming people changes nothing.
    """

    def __init__(self, config, sizes: Sizes, *, rngs: nnx.Rngs):
        if sizes.algebra != KINSHIP:
            raise InputError(
                f"reads words for relations of {KINSHIP.name}, expected stories with these and not "
                f"of {sizes.algebra.name}"
            )
        self.relations, self.key_size = sizes.relations, config.key
        self.relation_words, self.holder_words = sizes.relation_words, sizes.holder_words
        self.sentence_ends = sizes.sentence_ends
        self.first_word = FIRST_ENTITY + sizes.entities

        def vectors(count: int) -> nnx.Param:
            return nnx.Param(jax.random.normal(rngs.params(), (count, config.embedding)) / 2)

        self.pretrained = sizes.states > 0
        if self.pretrained:
            self.states = nnx.Linear(sizes.states, config.embedding, rngs=rngs)
        else:
            self.words = vectors(sizes.tokens - self.first_word)
        self.recency = vectors(RECENT + 1)
        self.word_dropout = nnx.Dropout(config.word_dropout, rngs=rngs)
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)
        width = 2 * config.hidden
        dims = [config.embedding] + [width] * (config.layers - 1)
        self.layers = nnx.List(BiLSTM(dim, config.hidden, rngs=rngs) for dim in dims)
        zero = nnx.initializers.zeros
        # Logits of a word: states a fact, predicate [Q], gender.
        self.meaning = nnx.Linear(
            width + config.embedding, NUM_PREDICATES + 2, kernel_init=zero, rngs=rngs
        )
        self.prior = nnx.Param(jnp.full(3, config.relation_word_prior))
        # For the holder (row 0) and the bearer (row 1) of a word.
        self.keys = nnx.Linear(width + config.embedding, 2 * config.key, rngs=rngs)
        self.queries = nnx.Linear(width, 2 * config.key, kernel_init=zero, rngs=rngs)
        between = jnp.abs(jnp.arange(2 * NEAR) - NEAR + 0.5) - 0.5  # names between, by place
        self.place = nnx.Param(jnp.tile(FARTHER * between, (2, 1)))
        ends = jnp.abs(jnp.arange(-2, 3))
        self.sentence = nnx.Param(jnp.tile(OTHER_SENTENCE * ends, (2, 1)))
        self.syntax = nnx.Param(jnp.full(2, config.syntax_prior))  # holder before, after the word
        self.gender = nnx.Linear(width, 1, kernel_init=zero, rngs=rngs)  # of a named person

    def __call__(self, batch: TokenBatch) -> jax.Array:
        """Probability of each relation of each ordered pair of people, [B, P, P, R]. A sum over
        relations below 1 leaves the rest to "no relation"."""
        return self.extract(batch)[0]

    def extract(self, batch: TokenBatch) -> tuple[jax.Array, jax.Array]:
        """Facts as above [B, P, P, R], and how far their predicates depart from the relation words
        that state them, [B]: the sum of the negative log-probabilities of the predicates that the
        words name."""
        pairs, predicate, gender = self._stated(batch)
        facts = jnp.einsum("btxy,btq->bxyq", pairs, predicate)
        facts += facts.swapaxes(1, 2)[..., INVERSE]
        facts /= jnp.maximum(facts.sum(axis=-1, keepdims=True), 1)
        named = self._named(batch)[0]
        stated = jax.lax.stop_gradient(pairs.sum(axis=(2, 3)))
        departure = -(named * jnp.log(predicate + 1e-6)).sum(axis=-1) * stated
        return facts[..., PREDICATE_OF] * gender[:, None][..., GENDER_OF], departure.sum(axis=1)

    def word_facts(self, batch: TokenBatch) -> tuple[jax.Array, jax.Array]:
        """Most probable fact that each word states: position of the holder among the people,
        relation and position of the bearer, [B, T, 3], and the probability that the word states
        this predicate of these people, [B, T]. The relation has the more probable gender of the
        bearer."""
        pairs, predicate, gender = self._stated(batch)
        flat = pairs.reshape(*pairs.shape[:2], -1)
        holder, bearer = jnp.divmod(flat.argmax(axis=-1), pairs.shape[-1])
        of_bearer = jnp.take_along_axis(gender.argmax(axis=-1), bearer, axis=1)
        relation = jnp.array(RELATION_OF)[predicate.argmax(axis=-1), of_bearer]
        probability = flat.max(axis=-1) * predicate.max(axis=-1)
        return jnp.stack([holder, relation, bearer], axis=-1), probability

    def _stated(self, batch: TokenBatch) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Probability that each word states a fact about a holder and a bearer [B, T, P, P],
        probabilities of its predicate [B, T, Q] and of the genders of all people [B, P, 2]."""
        words, names, is_person = self._encode(batch)
        states_fact, predicate, female = self._meaning(batch, words)
        pairs = self._pairs(batch, words, names, is_person) * states_fact[..., None, None]
        evidence = jnp.einsum("btxy,bt->by", pairs, female)
        evidence += jnp.einsum("bm,bmp->bp", self.gender(names)[..., 0], is_person)
        is_female = nnx.sigmoid(evidence)
        return pairs, predicate, jnp.stack([1 - is_female, is_female], axis=-1)

    def _encode(self, batch: TokenBatch) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Features of the words [B, T, 2H + D] and of the names [B, M, 2H], and the person of each
        name, one-hot [B, M, P]."""
        steps = batch.tokens.shape[1]
        story = jnp.arange(len(batch.tokens))[:, None]
        position = jnp.minimum(batch.name_positions, steps - 1)  # [B, M]
        token = jnp.where(batch.name_positions < steps, batch.tokens[story, position], PAD)
        entity = jnp.where(token == PAD, -2, token - FIRST_ENTITY)  # no person has -2
        is_person = (entity[..., None] == batch.people[:, None]).astype(jnp.float32)
        states = x = self._embed(batch, is_person)  # [T, B, D]
        for layer in self.layers:
            states = self.dropout(layer(states, batch.mask.T))
        words = self.dropout(jnp.concatenate([states, x], axis=-1)).swapaxes(0, 1)
        return words, states.swapaxes(0, 1)[story, position], is_person

    def _embed(self, batch: TokenBatch, is_person: jax.Array) -> jax.Array:
        """Token vectors [T, B, D], given the person of each name [B, M, P]."""
        back = jnp.zeros(is_person.shape[:2], jnp.int32)
        for distance in range(RECENT, 0, -1):
            before = jnp.pad(is_person, ((0, 0), (distance, 0), (0, 0)))[:, :-distance]
            back = jnp.where((before * is_person).any(axis=-1), distance, back)
        steps = batch.tokens.shape[1]
        is_name = (jnp.arange(steps) == batch.name_positions[..., None]).any(axis=1)  # [B, T]
        name = jnp.maximum(jnp.cumsum(is_name, axis=1) - 1, 0)
        recency = self.recency[...][jnp.take_along_axis(back, name, axis=1)]  # [B, T, D]
        if self.pretrained:
            assert batch.states is not None
            word = self.states(batch.states)
        else:
            tokens = batch.tokens - self.first_word
            known = (tokens >= 0) & (self.word_dropout(jnp.ones(tokens.shape)) > 0)
            word = jnp.where(known[..., None], self.words[...][jnp.maximum(tokens, 0)], 0.0)
        return self.dropout(jnp.where(is_name[..., None], recency, word)).swapaxes(0, 1)

    def _meaning(
        self, batch: TokenBatch, words: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Facts that words [B, T, 2H + D] state, whoever they are about: probability that the word
        states one [B, T], probabilities of the predicate of the bearer to the holder [B, T, Q], and
        evidence that the bearer is female [B, T]."""
        named, sign = self._named(batch)
        fact, predicate, gender = jnp.split(self.meaning(words), [1, NUM_PREDICATES + 1], axis=-1)
        prior = self.prior[...]
        fact = fact[..., 0] + SILENT + prior[0] * named.sum(axis=-1)
        predicate += prior[1] * named
        gender = gender[..., 0] + prior[2] * sign
        return nnx.sigmoid(fact) * batch.mask, nnx.softmax(predicate), gender

    def _named(self, batch: TokenBatch) -> tuple[jax.Array, jax.Array]:
        """Predicate that a word names, one-hot [B, T, Q] or zero, and the sign of the gender that
        it names, [B, T]: -1 male, 1 female, 0 none."""
        token, predicate, sign = np.array(self.relation_words, int).reshape(-1, 3).T
        is_word = (batch.tokens[..., None] == token).astype(jnp.float32)  # [B, T, words]
        return is_word @ np.eye(NUM_PREDICATES, dtype=np.float32)[predicate], is_word @ sign

    def _pairs(
        self, batch: TokenBatch, words: jax.Array, names: jax.Array, is_person: jax.Array
    ) -> jax.Array:
        """Probabilities of the holder and the bearer of each word, [B, T, P, P]; arguments as
        returned by `_encode`."""
        split = (2, self.key_size)
        keys = self.keys(words).reshape(*words.shape[:2], *split)
        queries = self.queries(names).reshape(*names.shape[:2], *split)
        score = jnp.einsum("btrk,bmrk->brtm", keys, queries) / self.key_size**0.5
        logits, near = self._place_logits(batch)
        near &= is_person.any(axis=-1)[:, None]
        score = jnp.where(near[:, None], score + logits, -jnp.inf)
        # The names of a person add up.
        largest = jax.lax.stop_gradient(jnp.maximum(score.max(axis=-1, keepdims=True), -1e9))
        total = jnp.einsum("brtm,bmp->brtp", jnp.exp(score - largest), is_person)
        holder, bearer = jnp.log(total + 1e-20).swapaxes(0, 1)
        pairs = holder[..., :, None] + bearer[..., None, :]  # [B, T, P, P]
        near = jnp.einsum("btm,bmp->btp", near.astype(jnp.float32), is_person) > 0
        different = ~jnp.eye(near.shape[-1], dtype=bool)
        allowed = near[..., None] & near[..., None, :] & different
        flat = jnp.where(allowed, pairs, -1e9).reshape(*pairs.shape[:2], -1)
        return nnx.softmax(flat).reshape(pairs.shape) * allowed

    def _place_logits(self, batch: TokenBatch) -> tuple[jax.Array, jax.Array]:
        """Logits of a name as the holder and the bearer of a word, given their places alone,
        [B, 2, T, M], and whether a name is close enough to be considered [B, T, M]."""
        steps, count = batch.tokens.shape[1], batch.name_positions.shape[1]
        before = (batch.name_positions[:, None] <= jnp.arange(steps)[:, None]).sum(axis=-1)
        place = jnp.arange(count) - before[..., None] + NEAR  # [B, T, M]; NEAR is the next name
        logits = self.place[...][:, jnp.clip(place, 0, 2 * NEAR - 1)]  # [2, B, T, M]
        # Number of sentence ends from the word to the name.
        sentence = jnp.cumsum(is_any_of(batch.tokens, self.sentence_ends), axis=1)  # [B, T]
        position = jnp.minimum(batch.name_positions, steps - 1)
        ends = jnp.take_along_axis(sentence, position, axis=1)[:, None] - sentence[..., None]
        logits += self.sentence[...][:, jnp.clip(ends, -2, 2) + 2]
        cue = self.syntax[...] * self._holder_cues(batch.tokens)  # [B, T, 2]
        holder = cue[..., :1] * (place == NEAR - 1) + cue[..., 1:] * (place == NEAR)
        logits = logits.at[0].add(holder)
        return logits.swapaxes(0, 1), (place >= 0) & (place < 2 * NEAR)

    def _holder_cues(self, tokens: jax.Array) -> jax.Array:
        """Words near each token that suggest that its holder is the name before it (column 0) or
        after it: [B, T] -> bool [B, T, 2]."""
        before, after = (is_any_of(tokens, words) for words in self.holder_words)
        padded = jnp.pad(before, ((0, 0), (2, 0)))
        is_before = padded[:, 1:-1] | padded[:, :-2]  # one or two tokens back
        return jnp.stack([is_before, jnp.pad(after, ((0, 0), (0, 1)))[:, 1:]], axis=-1)
