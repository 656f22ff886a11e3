"""Writes tests/encoder_reference.npz: states of small random encoders by the reference
implementation of each architecture.

    python -m tests.encoder_reference

Run on a CPU with torch 2.13.0 and transformers 5.23.0. For each of `ENCODERS`, whose weights
`random_tensors` draws, the file has the states of all tokens of `batch()`, [sum(LENGTHS), 32].
"""

import tempfile
from pathlib import Path

import numpy as np

from tests.tiny_bert import DEBERTA, ROBERTA, write_encoder

FILE = Path(__file__).with_suffix(".npz")
LENGTHS = (40, 9, 1)  # tokens of the stories
_OWN_KEYS = {"share_att_key": False, "position_buckets": -1, "norm_rel_ebd": "none"}
ENCODERS = {
    "RoBERTa": ROBERTA,
    "DeBERTa-v3": DEBERTA,
    "DeBERTa-v2": DEBERTA
    | _OWN_KEYS
    | {"max_relative_positions": 10, "position_biased_input": True, "type_vocab_size": 2},
    "DeBERTa, c2p": DEBERTA | _OWN_KEYS | {"pos_att_type": ["c2p"]},
    "DeBERTa, p2c": DEBERTA | {"pos_att_type": ["p2c"], "position_buckets": 7},
}


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Token ids and mask [3, 40]."""
    mask = np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None]
    ids = np.random.default_rng(1).integers(5, 50, mask.shape)
    return np.where(mask, ids, 1), mask  # RoBERTa counts positions of tokens other than 1


def main() -> None:
    import torch
    from transformers import AutoModel

    ids, mask = batch()
    states = {}
    for name, config in ENCODERS.items():
        with tempfile.TemporaryDirectory() as folder:
            write_encoder(Path(folder), config)
            model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
        with torch.no_grad():
            output = model(torch.tensor(ids), torch.tensor(mask.astype(int)))
        states[name] = output.last_hidden_state.numpy()[mask]
    np.savez_compressed(FILE, **states)


if __name__ == "__main__":
    main()
