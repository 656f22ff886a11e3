"""The file of answers that were not mapped to a relation."""

import json

import pytest

from clutrr_jax.data.dataset import load
from clutrr_jax.data.records import story_ids
from clutrr_jax.evaluation.predictions import write_predictions
from clutrr_jax.score import main
from generator.errors import InputError
from generator.kinship import RELATIONS
from tests.evaluation.test_metrics import some_predictions


def test_unmapped_predictions_are_written(small_folder, tmp_path, capsys) -> None:
    """The file has every text that was not mapped, with the right relation. Mapped texts and runs
    add none."""
    data = load(small_folder)
    ids = story_ids(data.test)
    target = [RELATIONS[t] for t in data.test.target]
    texts = {("0", 3): "<think>a\nson", ("1", 5): "", ("1", 3): 'a "cousin" \u00e9'}
    rows = [
        {"id": id, "replica": replica, "prediction": texts.get((replica, story), target[story])}
        for replica in "01"
        for story, id in enumerate(ids)
    ]
    (tmp_path / "lm.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "run").mkdir()
    write_predictions(
        tmp_path / "run/predictions.csv", some_predictions(data.test, replicas=1), data.test
    )
    files = [f"mine={tmp_path / 'lm.jsonl'}", str(tmp_path / "run/predictions.csv")]
    command = ["--data", str(small_folder), "--predictions", *files]
    main([*command, "--unmapped", str(tmp_path / "lost.jsonl")])
    assert list(map(json.loads, (tmp_path / "lost.jsonl").read_text().splitlines())) == [
        {"model": "mine", "replica": int(replica), "id": ids[story], "target": target[story],
         "prediction": text}
        for (replica, story), text in sorted(texts.items(), key=lambda item: item[0])
    ]  # fmt: skip
    printed = capsys.readouterr().out
    assert printed.count("were not mapped to a relation") == 1
    assert "mine: 3 of 160 answers were not mapped to a relation (score --unmapped FILE" in printed
    assert f"Wrote 3 answers that were not mapped to {tmp_path / 'lost.jsonl'}." in printed
    with pytest.raises(InputError, match="expected another file than mine="):
        main([*command, "--unmapped", str(tmp_path / "lm.jsonl")])
    assert len((tmp_path / "lm.jsonl").read_text().splitlines()) == 160
