"""A Hugging Face folder with a small random BERT."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

CONFIG = {
    "model_type": "bert",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
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
    biases = [name.replace("weight", "bias") for name in shapes if name.startswith("encoder")]
    shapes |= {name: (between if "intermediate" in name else hidden,) for name in biases}
    shapes |= {f"{norm}.{part}": (hidden,) for norm in norms for part in ("weight", "bias")}
    rng = np.random.default_rng(0)
    return {
        name: rng.normal(1 if name.endswith("Norm.weight") else 0, 0.3, shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def write_weights(folder: Path, tensors: dict[str, np.ndarray]) -> None:
    save_file(tensors, folder / "model.safetensors")


def write_bert(folder: Path, words: Sequence[str] = ()) -> Path:
    """Writes a random BERT whose `vocab.txt` has letters, digits, the words and a few pieces."""
    folder.mkdir(parents=True, exist_ok=True)
    characters = "abcdefghijklmnopqrstuvwxyz0123456789"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "'", "17", "un", "##able"]
    tokens += [*characters, *(f"##{c}" for c in characters), *words]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    config = CONFIG | {"vocab_size": len(tokens)}
    (folder / "config.json").write_text(json.dumps(config))
    write_weights(folder, random_tensors(config))
    return folder
