"""Column "given": the value of each model of the registry, of settings, variants and baselines."""

import pytest

from clutrr_jax.evaluation.baselines import BASELINES
from clutrr_jax.models import MODELS
from clutrr_jax.models.given import given

READER = "predicates and genders, words for relations"
GIVEN = {
    "reader_prover": READER,
    "reader_prover_bert": f"pretrained encoder, {READER}",
    "bert": "pretrained encoder",
    "bert_lstm": "pretrained encoder",
}


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        *((name, {}, GIVEN.get(name, "nothing")) for name in MODELS),
        ("prover", {"share_genders": True}, "predicates and genders"),
        ("ctp_memory", {"share_genders": True}, "predicates and genders"),
        ("reader_prover", {"reasoner": "rules"}, f"{READER}, rules"),
        ("reader_prover", {"gold": 0.5}, f"{READER}, facts as labels"),
        ("reader_prover", {"reasoner": "rules", "gold": 1.0}, f"{READER}, rules, facts as labels"),
        ("reader_prover", {"relation_word_prior": 0.0}, READER),
        (
            "reader_prover",
            {"relation_word_prior": 0.0, "relation_word_penalty": 0.0},
            "predicates and genders",
        ),
    ],
)
def test_settings_decide(name: str, changes: dict, expected: str) -> None:
    assert given(MODELS[name].config | changes) == expected


def test_variants_and_baselines() -> None:
    config = MODELS["reader_prover"].config
    found = [given(config, variant) for variant in MODELS["reader_prover"].variants]
    parts = ["rules", "stated facts", "stated facts, rules"]
    assert found == [f"{READER}, {part}" for part in parts]
    assert given(config | {"reasoner": "rules"}, "given rules") == f"{READER}, rules"
    assert [given({}, name) for name in BASELINES] == ["rules", "nothing", "nothing"]
