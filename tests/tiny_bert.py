"""A BERT of a few numbers in a folder, written by the tests."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

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
    """All tensors that the encoder has, under the names of the published models."""
    hidden, between = config["hidden_size"], config["intermediate_size"]
    shapes = {
        "embeddings.word_embeddings.weight": (config["vocab_size"], hidden),
        "embeddings.position_embeddings.weight": (config["max_position_embeddings"], hidden),
        "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], hidden),
    }
    norms = ["embeddings.LayerNorm"]
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
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
    header, end = {}, 0
    for name, tensor in tensors.items():
        place = [end, end := end + tensor.nbytes]
        kind = {"float32": "F32", "float16": "F16", "int64": "I64"}[str(tensor.dtype)]
        header[name] = {"dtype": kind, "shape": tensor.shape, "data_offsets": place}
    text = json.dumps(header).encode()
    data = b"".join(tensor.tobytes() for tensor in tensors.values())
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)


def write_bert(folder: Path, words: Sequence[str] = ()) -> Path:
    """A folder with `vocab.txt`: the words, letters, digits and a few pieces more."""
    folder.mkdir(parents=True, exist_ok=True)
    signs = "abcdefghijklmnopqrstuvwxyz0123456789"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "'", "17", "un", "##able"]
    pieces += [*signs, *(f"##{sign}" for sign in signs), *words]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    config = CONFIG | {"vocab_size": len(pieces)}
    (folder / "config.json").write_text(json.dumps(config))
    write_weights(folder, random_tensors(config))
    return folder
