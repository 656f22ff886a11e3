"""Copies of stories, and test stories that are train stories."""

import clutrr_jax
from clutrr_jax import evaluate, load
from clutrr_jax.data.copies import copy_notes, count_copies

FACTS = [("Ann", "son", "Bob"), ("Bob", "sister", "Cy")]
ROW = {"story": "[Ann] and her son [Bob] came. [Bob] met his sister [Cy].", "facts": FACTS,
       "query": "Ann, Cy", "target": "daughter", "k": 2}  # fmt: skip
OTHER = ROW | {"story": ROW["story"] + " [Bob] left."}
AGAIN = ROW | {"story": "[bob] met his sister [cy].  [ANN] and her son [bob] came.",
               "facts": None, "query": "ANN, cy"}  # fmt: skip
SHARED = "2 test stories are also train stories, whose text or facts models have seen."


def graph(**change) -> dict:
    return {"facts": FACTS, "query": "Ann, Cy", "target": "daughter", "k": 2} | change


def test_test_stories_that_are_train_stories_are_counted(capsys) -> None:
    data = load({"train": [ROW, OTHER], "test": [AGAIN, ROW | {"query": "Ann, Bob"}]})
    assert count_copies(data.train, data.test) == {"train": 0, "test": 0, "shared": 2}
    assert capsys.readouterr().err == f"data set: {SHARED}\n"
    graphs = load({"train": [graph()], "test": [graph(facts=FACTS[::-1]), graph(query="Ann, Bob")]})
    assert count_copies(graphs.train, graphs.test) == {"train": 0, "test": 0, "shared": 1}
    capsys.readouterr()
    load({"train": [ROW], "test": [OTHER]})
    assert not capsys.readouterr().err


def test_copies_within_a_split_are_counted(capsys) -> None:
    data = load({"train": [OTHER] * 3, "test": [ROW, ROW | {"query": "Ann, Bob"}, ROW]})
    assert count_copies(data.train, data.test) == {"train": 2, "test": 1, "shared": 0}
    assert capsys.readouterr().err == (
        "data set/train: 2 stories are copies of others in it, and count twice\n"
        "data set/test: 1 stories are copies of others in it, and count twice\n"
    )
    many = {f"test_{i}": [ROW, ROW] for i in range(4)}
    assert count_copies(None, load(many).test)["test"] == 7
    message = "7 stories of data set/test_0 and 3 other files are copies of others, and count twice"
    assert capsys.readouterr().err == f"{message}\n"


def test_reports_say_how_many_stories_are_copies(tmp_path) -> None:
    data = load({"train": [ROW] * 9 + [OTHER], "test": [ROW, ROW | {"query": "Ann, Bob"}]})
    notes = [SHARED, "8 train stories are copies of others, and count twice."]
    assert copy_notes(count_copies(data.train, data.test)) == notes
    scores = evaluate({"mine": ["daughter", "son"]}, data)
    assert scores.notes() == notes and SHARED in repr(scores)
    run = clutrr_jax.train("edge_rnn", data, replicas=1, epochs=1, folder=tmp_path / "run")
    assert run.results["data"][0]["copies"] == {"train": 8, "test": 0, "shared": 2}
    for file in ("results.md", "report.html"):
        assert SHARED in (tmp_path / "run" / file).read_text()
