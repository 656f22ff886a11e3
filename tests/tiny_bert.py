"""Hugging Face folders with a small random BERT, RoBERTa or DeBERTa."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers.implementations import BertWordPieceTokenizer

CONFIG = {
    "model_type": "bert",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
}


ROBERTA = CONFIG | {
    "model_type": "roberta",
    "vocab_size": 50,
    "max_position_embeddings": 66,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
}
# As in version 3: buckets of distances, projections shared by content and positions.
DEBERTA = CONFIG | {
    "model_type": "deberta-v2",
    "vocab_size": 50,
    "max_position_embeddings": 64,
    "type_vocab_size": 0,
    "layer_norm_eps": 1e-7,
    "relative_attention": True,
    "position_biased_input": False,
    "position_buckets": 8,
    "max_relative_positions": -1,
    "pos_att_type": "p2c|c2p",
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
}


def random_tensors(config: dict) -> dict[str, np.ndarray]:
    """Random tensors of the encoder, under the names of the published models."""
    hidden, between = config["hidden_size"], config["intermediate_size"]
    shapes = {
        "embeddings.word_embeddings.weight": (config["vocab_size"], hidden),
        "embeddings.position_embeddings.weight": (config["max_position_embeddings"], hidden),
        "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], hidden),
    }
    norms = ["embeddings.LayerNorm"]
    for index in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{index}"
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
        for name in ("attention.self.query", "attention.self.key", "attention.self.value"):
            shapes[f"{layer}.{name}.weight"] = (hidden, hidden)
        shapes[f"{layer}.attention.output.dense.weight"] = (hidden, hidden)
        shapes[f"{layer}.intermediate.dense.weight"] = (between, hidden)
        shapes[f"{layer}.output.dense.weight"] = (hidden, between)
    if config["model_type"] == "deberta-v2":
        shapes = _deberta_shapes(config, shapes)
        norms += ["encoder.LayerNorm"] * (config["norm_rel_ebd"] == "layer_norm")
    biases = [name.replace("weight", "bias") for name in shapes if name.startswith("encoder.layer")]
    shapes |= {name: (between if "intermediate" in name else hidden,) for name in biases}
    shapes |= {f"{norm}.{part}": (hidden,) for norm in norms for part in ("weight", "bias")}
    rng = np.random.default_rng(0)
    return {
        name: rng.normal(1 if name.endswith("Norm.weight") else 0, 0.3, shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def _deberta_shapes(config: dict, shapes: dict[str, tuple]) -> dict[str, tuple]:
    """Shapes of the weights of a DeBERTa, from those of a BERT of the same size."""
    hidden = config["hidden_size"]
    span = config["position_buckets"]
    if span < 1:
        span = config["max_relative_positions"]
    if span < 1:
        span = config["max_position_embeddings"]
    shapes = {
        re.sub(r"\.(query|key|value)\.", r".\1_proj.", name): shape
        for name, shape in shapes.items()
        if 0 not in shape and ("position" not in name or config["position_biased_input"])
    }
    shapes["encoder.rel_embeddings.weight"] = (2 * span, hidden)
    for term, name in (("c2p", "pos_key_proj"), ("p2c", "pos_query_proj")):
        if term in config["pos_att_type"] and not config["share_att_key"]:
            for index in range(config["num_hidden_layers"]):
                shapes[f"encoder.layer.{index}.attention.self.{name}.weight"] = (hidden, hidden)
    return shapes


def write_encoder(folder: Path, config: dict) -> Path:
    """Writes `config.json` and random weights."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    write_weights(folder, random_tensors(config))
    return folder


def write_weights(folder: Path, tensors: dict[str, np.ndarray]) -> None:
    save_file(tensors, folder / "model.safetensors")


def write_tokenizer(folder: Path, tokens: Sequence[str]) -> None:
    tokenizer = BertWordPieceTokenizer({token: i for i, token in enumerate(tokens)})
    tokenizer.save(str(folder / "tokenizer.json"))


def write_bert(folder: Path, words: Sequence[str] = ()) -> Path:
    """Writes a random BERT whose tokens are letters, digits, the words and a few pieces."""
    folder.mkdir(parents=True, exist_ok=True)
    characters = "abcdefghijklmnopqrstuvwxyz0123456789"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "'", "17", "un", "##able"]
    tokens += [*characters, *(f"##{c}" for c in characters), *words]
    write_tokenizer(folder, tokens)
    return write_encoder(folder, CONFIG | {"vocab_size": len(tokens)})
