"""Random stories of the benchmark of 2018, as rows in the published columns."""

from collections.abc import Iterator
from uuid import UUID

import numpy as np

from generator.relations.kinship import NUM_RELATIONS, RELATION_OF, RELATIONS
from generator.tables.columns import format_row, story_row
from generator.workshop.paths import Family, Paths
from generator.workshop.rules import RELATIONS_2018, prove
from generator.workshop.text import DISTRACTORS, FACTS, KINDS, PEOPLE

BLOCK = 4096  # stories per batch; changing it changes the stories of a seed

_IN_2018 = np.isin(np.arange(NUM_RELATIONS), RELATIONS_2018)
_SENTENCES = tuple(DISTRACTORS.values())
_NUM_SENTENCES = np.array([len(sentences) for sentences in _SENTENCES])


def sample_batch(
    members: Family, paths: Paths, distractors: int, rng: np.random.Generator
) -> tuple[np.ndarray, ...]:
    """Samples `BLOCK` stories of a path and d distractors per person, and returns those whose
    relations are all in the benchmark, as the arrays of the return statement."""
    k = paths.clause.shape[1]
    path = rng.choice(len(paths.weight), BLOCK, p=paths.weight / paths.weight.sum())  # [B]
    people = paths.people[path]  # [B, k + 1]

    # Descendants have random genders, their partners the opposite ones.
    bits = rng.integers(0, 2, (BLOCK, len(members.head)))
    head = members.head[people]
    gender = np.take_along_axis(bits, head, 1) ^ (head != people)  # [B, k + 1]
    relation = RELATION_OF[paths.clause[path], gender[:, 1:]]  # [B, k]
    answer = RELATION_OF[paths.answer[path], gender[:, -1]]
    allowed = _IN_2018[relation].all(axis=1) & _IN_2018[answer]

    b = int(allowed.sum())
    # Kinds of distractors [b, k + 1, d] and names [b, k + 1], each without repetition in its story;
    # the order of all sentences; the template of each fact; the sentence within each kind.
    kind = rng.random((b, k + 1, len(KINDS))).argsort(axis=2)[..., :distractors]
    order = rng.random((b, k + (k + 1) * distractors)).argsort(axis=1)
    order[order < k] = np.tile(np.arange(k), b)  # sort the facts among their random places
    name = rng.random((b, len(PEOPLE))).argsort(axis=1)[:, : k + 1]
    template = rng.integers(0, len(FACTS), (b, k))
    sentence = rng.integers(0, _NUM_SENTENCES[kind])
    uuid = np.frombuffer(rng.bytes(16 * b), np.uint8).reshape(b, 16)
    of_story = (array[allowed] for array in (path, gender, relation, answer))
    return (*of_story, name, template, kind, sentence, order, uuid)


def story_rows(
    members: Family, paths: Paths, distractors: int, split: str, rng: np.random.Generator
) -> Iterator[tuple[str, ...]]:
    """Yields an endless sequence of rows in the published columns; see `sample_batch`."""
    k = paths.clause.shape[1]
    index = 0
    while True:
        batch = sample_batch(members, paths, distractors, rng)
        for path, gender, relations, answer, name, templates, kind, sentence, order, uuid in zip(
            *(column.tolist() for column in batch), strict=True
        ):
            names = [PEOPLE[i] for i in name]
            stated = [
                FACTS[t].format(x=names[i], r=RELATIONS[relations[i]], y=names[i + 1])
                for i, t in enumerate(templates)
            ]
            sentences = stated + [
                _SENTENCES[a][s].format(names[i])
                for i in range(k + 1)
                for a, s in zip(kind[i], sentence[i], strict=True)
            ]
            row = story_row(
                row_index=index + 1,
                id=str(UUID(bytes=bytes(uuid), version=4)),
                story=" ".join([sentences[i] for i in order]),
                clean_story=" ".join(stated),
                names=names,
                genders=gender,
                edges=[(i, i + 1) for i in range(k)],
                relations=relations,
                query=(0, k),
                target=answer,
                noise=1,  # none
                k=k,
                split=split,
            )
            answers = [FACTS[0].format(x=names[0], r=RELATIONS[answer], y=names[-1])]
            proof = _proof_steps(tuple(paths.clause[path].tolist()), relations, gender)
            yield format_row(row, answers, proof, paths.people[path].tolist())
            index += 1


def _proof_steps(
    clause: tuple[int, ...], relations: list[int], gender: list[int]
) -> list[tuple[int, ...]]:
    """Proof steps from the root for `format_row`; empty if the facts do not imply the answer."""
    proof = prove(clause)
    if proof is None:
        return []
    known = {(i, i + 1): relation for i, relation in enumerate(relations)}
    known |= {(i, j): int(RELATION_OF[p, gender[j]]) for i, _, j, p in proof.steps}
    return [(i, m, j, known[i, j], known[i, m], known[m, j]) for i, m, j, _ in proof.steps]
