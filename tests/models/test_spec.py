"""Column "given": what a model, with some settings, or one of its variants has."""

import pytest

from clutrr_jax.models import MODELS, Spec
from experiments.published.differences import OF_MODEL

READER = "predicates and genders, words for relations"


@pytest.mark.parametrize(
    ("name", "changes", "variant", "expected"),
    [
        ("gat", {}, "", "nothing"),
        ("edge_cnn", {}, "", "order of facts"),
        ("bert", {}, "", "pretrained encoder"),
        ("reader_prover_bert", {}, "", f"pretrained encoder, {READER}"),
        ("prover", {"share_genders": True}, "", "predicates and genders"),
        ("ctp_memory", {"share_genders": True}, "", "predicates and genders"),
        ("reader_prover", {"reasoner": "rules"}, "", f"{READER}, rules"),
        ("reader_prover", {"gold": 0.5}, "", f"{READER}, facts as labels"),
        ("reader_prover", {"relation_word_prior": 0.0}, "", READER),
        ("reader_prover", {}, "stated facts", f"{READER}, stated facts"),
        ("reader_prover", {"reasoner": "rules"}, "given rules", f"{READER}, rules"),
    ],
)
def test_settings_decide_what_is_given(name, changes, variant, expected) -> None:
    spec = MODELS[name]
    assert spec.given(spec.config | changes, variant) == expected
    started = spec.given(spec.config | changes, variant, started=True)
    assert started == "another training" + f", {expected}" * (expected != "nothing")


def test_models_declare_what_their_settings_were_chosen_on() -> None:
    assert {spec.chosen_on for spec in MODELS.values()} <= {"paper", "generated", "released tests"}
    other = {name for name, difference in OF_MODEL.items() if " instead of " in difference}
    assert other and "paper" not in {MODELS[name].chosen_on for name in other}


def test_settings_of_a_model_of_your_own_say_nothing() -> None:
    assert Spec(object, "graph", {}).given({"folder": "my_outputs", "gold": 1}) == "nothing"
