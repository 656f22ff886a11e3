"""Random stories of the benchmark of 2018, as rows in the published columns."""

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

import numpy as np

from generator.columns import format_row
from generator.kinship import NUM_RELATIONS, RELATION_OF, RELATIONS
from generator.workshop.paths import Family, Paths
from generator.workshop.rules import RELATIONS_2018, prove
from generator.workshop.text import DISTRACTORS, FACTS, KINDS, PEOPLE

BLOCK = 4096  # stories per batch; changing it changes the stories of a seed

_IN_2018 = np.isin(np.arange(NUM_RELATIONS), RELATIONS_2018)
_SENTENCES = tuple(DISTRACTORS.values())
_NUM_SENTENCES = np.array([len(sentences) for sentences in _SENTENCES])


class Batch(NamedTuple):
    """The random choices of B stories of k facts with d distractor sentences per person."""

    path: np.ndarray  # [B] row of Paths
    gender: np.ndarray  # [B, k + 1] along the path
    name: np.ndarray  # [B, k + 1] index into PEOPLE, without repetition
    fact: np.ndarray  # [B, k] template
    kind: np.ndarray  # [B, k + 1, d] kind of distractor, without repetition per person
    sentence: np.ndarray  # [B, k + 1, d] index within the kind
    order: np.ndarray  # [B, k + (k + 1) d] order of the sentences; the facts stay in order
    uuid: np.ndarray  # [B, 16] bytes


def sample_batch(
    members: Family, paths: Paths, distractors: int, rng: np.random.Generator
) -> Batch:
    """Samples `BLOCK` stories and returns those whose relations are all in the benchmark.

    Args:
      members: the family that `paths` is about.
      paths: paths to sample from.
      distractors: number of distractor sentences per person.
      rng: random generator.
    """
    k = paths.clause.shape[1]
    path = rng.choice(len(paths.weight), BLOCK, p=paths.weight / paths.weight.sum())
    people = paths.people[path]  # [B, k + 1]

    # Descendants have random genders, their partners the opposite ones.
    bits = rng.integers(0, 2, (BLOCK, len(members.head)))
    head = members.head[people]
    gender = np.take_along_axis(bits, head, 1) ^ (head != people)
    facts, answer = _relations(paths, path, gender)
    allowed = _IN_2018[facts].all(axis=1) & _IN_2018[answer]
    path, gender = path[allowed], gender[allowed]

    b = len(path)
    kind = rng.random((b, k + 1, len(KINDS))).argsort(axis=2)[..., :distractors]
    order = rng.random((b, k + (k + 1) * distractors)).argsort(axis=1)
    order[order < k] = np.tile(np.arange(k), b)  # sort the facts among their random places
    return Batch(
        path=path,
        gender=gender,
        name=rng.random((b, len(PEOPLE))).argsort(axis=1)[:, : k + 1],
        fact=rng.integers(0, len(FACTS), (b, k)),
        kind=kind,
        sentence=rng.integers(0, _NUM_SENTENCES[kind]),
        order=order,
        uuid=np.frombuffer(rng.bytes(16 * b), np.uint8).reshape(b, 16),
    )


def _relations(paths: Paths, path: np.ndarray, gender: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The relations of the facts [B, k] and of the answer [B]."""
    facts = RELATION_OF[paths.clause[path], gender[:, 1:]]
    return facts, RELATION_OF[paths.answer[path], gender[:, -1]]


def story_rows(
    members: Family, paths: Paths, distractors: int, split: str, rng: np.random.Generator
) -> Iterator[tuple[str, ...]]:
    """Yields an endless sequence of rows in the published columns; see `sample_batch`."""
    k = paths.clause.shape[1]
    edges = [(i, i + 1) for i in range(k)]
    index = 0
    while True:
        batch = sample_batch(members, paths, distractors, rng)
        facts, answers = _relations(paths, batch.path, batch.gender)
        for path, gender, name, fact, kind, sentence, order, uuid, relations, answer in zip(
            *(column.tolist() for column in batch), facts.tolist(), answers.tolist(), strict=True
        ):
            names = [PEOPLE[i] for i in name]
            stated = [
                FACTS[t].format(x=names[i], r=RELATIONS[relations[i]], y=names[i + 1])
                for i, t in enumerate(fact)
            ]
            sentences = stated + [
                _SENTENCES[a][s].format(names[i])
                for i in range(k + 1)
                for a, s in zip(kind[i], sentence[i], strict=True)
            ]
            yield format_row(
                index=index,
                uuid=str(UUID(bytes=bytes(uuid), version=4)),
                story=" ".join([sentences[i] for i in order]),
                clean_story=" ".join(stated),
                stated_target=[FACTS[0].format(x=names[0], r=RELATIONS[answer], y=names[-1])],
                names=names,
                genders=gender,
                edges=edges,
                relations=relations,
                query=(0, k),
                target=answer,
                proof=_proof_steps(tuple(paths.clause[path].tolist()), relations, gender),
                family_nodes=paths.people[path].tolist(),
                task=f"1.{k}",
                k=k,
                split=split,
            )
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
