"""The recorded results, the pages made from them, and the command that makes the results."""

import json
import re
import shutil
from dataclasses import asdict

import pytest

from clutrr_jax.experiment import DATA, SUMMARY, runs
from clutrr_jax.report.tables import changed_settings
from clutrr_jax.run import identity
from experiments import claims, figure5, paper, render, table2
from experiments.published.differences import OF_MODEL
from experiments.published.systematic import GRAPH_ROWS
from generator.errors import InputError

RECORDED = paper.recorded()
RELEASED = {*figure5.RELEASES.values(), *table2.RELEASES}


def test_pages_are_those_of_the_results() -> None:
    assert render.main(["--check"]) == 0


def test_results_are_of_one_commit_and_of_parts() -> None:
    """`recorded` has checked the form of every file."""
    assert {path.stem for path in paper.RESULTS.glob("*.json")} <= {*paper.PARTS, *paper.SPEEDS}
    parts = [one for name, one in RECORDED.items() if name in paper.PARTS]
    assert len({one["commit"] for one in parts}) <= 1
    assert not [name for name, one in RECORDED.items() if one["commit"].endswith("dirty")]
    for part in parts:
        assert part.get("scale") != "smoke"


@pytest.mark.parametrize("name", ["results", "robustness", "studies", "workshop"])
def test_sentences_quote_no_accuracy(name: str) -> None:
    """Numbers stand in tables, which are rendered, so that no sentence can contradict them."""
    text = (paper.ROOT / f"docs/{name}.md").read_text()
    prose = render.BLOCK.sub("", text)
    assert not re.findall(r"(?<![\w.-])[01]?\.\d\d\b", prose)
    assert len(text.splitlines()) <= 300


def test_every_part_is_on_a_page() -> None:
    pages = "".join((paper.ROOT / page).read_text() for page in render.PAGES)
    shown = {name for _, _, words, _ in render.BLOCK.findall(pages)
             for name in words.split()[0].split("+")}  # fmt: skip
    assert shown == {*paper.PARTS, *paper.SPEEDS}


def test_what_differs_from_published_models_is_said() -> None:
    assert {row.model for row in GRAPH_ROWS if row.model} == set(OF_MODEL)


def test_reasons_belong_to_claims() -> None:
    tables = (claims.FIGURE_5, claims.FIGURE_6, claims.FIGURE_7, claims.TABLE_2, claims.TABLE_4,
              claims.WORKSHOP_TABLE_1)  # fmt: skip
    assert set(claims.REASONS) <= {
        statement for table in tables for question in table.values() for statement in question
    }


def measured(accuracy: float, **others) -> dict:
    row = {"accuracy": accuracy, "stderr": 0.01, "count": 10, "replicas": 2}
    row["ceiling"] = 0.93 if others["k"] == 3 else 1.0
    return row | {"published": None, "task": "1.2"} | others


def part(rows: list[dict], **others) -> dict:
    model = {"parameters": 1234, "replicas": 2, "epochs": 7, "seconds": 3600.0, "settings": {}}
    return {
        "part": "figure5", "name": "figure5", "scale": "laptop", "commit": "abc", "date": "",
        "columns": ["train k", "k", "model"],
        "models": {"gat": model, "bilstm_attention": model}, "rows": rows, "averages": [],
        "series": [{"name": "gat", "baseline": False}, {"name": "given rules", "baseline": True}],
        "given": {"gat": "nothing", "bilstm_attention": "nothing", "given rules": "rules"},
        "references": [{"panel": "2,3", "name": "gat, published (X)", "series": "gat",
                        "given": "nothing", "source": "X 2020", "shown": True,
                        "values": {"3": {"mean": 0.5, "error": None}}}],
        "claims": {"Q1": {"supported": ["a"], "not supported": ["b"], "undecided": ["c"]}},
        "devices": ["a device"], "wall_seconds": 7200.0, "unfinished": ["k234/gat"],
    } | others  # fmt: skip


ROWS = [
    measured(accuracy, **{"train k": panel, "k": k, "model": model})
    for panel, k, model, accuracy in (
        ("2,3", 2, "bilstm_attention", 0.25),
        ("2,3", 2, "gat", 0.75), ("2,3", 3, "gat", 0.7),
        ("2,3", 2, "gat (ensemble of 2)", 0.8),
        ("2,3", 2, "given rules", 1.0), ("2,3,4", 2, "gat", 0.6),
    )
]  # fmt: skip


def test_table_by_k() -> None:
    text = render.render(
        "before\n<!-- rendered: by_k figure5+graphs 2,3 -->\nold\n<!-- end -->\nafter",
        {"figure5": part(ROWS)},
    )
    assert text.splitlines() == [
        "before",
        "<!-- rendered: by_k figure5+graphs 2,3 -->",
        "| model | reads | given | parameters | replicas | k=2 | 3 "
        "| largest standard error |",
        "|---|---|---|---|---|---|---|---|",
        "| gat | facts | nothing | 1,234 | 2 | .75 | .70 | .01 |",
        "| gat, published (X) | facts | nothing |  |  |  | .50 |  |",
        "| bilstm_attention | story | nothing | 1,234 | 2 | .25 |  | .01 |",
        "| given rules |  | rules |  |  | 1.00 |  |  |",
        "| ceiling |  |  |  |  | 1.00 | .93 |  |",
        "| stories |  |  |  |  | 10 | 10 |  |",
        "<!-- end -->",
        "after",
    ]  # fmt: skip
    assert render.render(text, {"figure5": part(ROWS)}) == text  # once more changes nothing


@pytest.mark.parametrize(
    ("block", "line"),
    [
        (
            "made figure5",
            "2.0 h of training on a device, recorded at commit abc. "
            "Runs that are still to be made: 1.",
        ),
        (
            "made figure5+graphs",
            "2.0 h of training on a device, recorded at commit abc. Runs that "
            "are still to be made: 1. Parts that are still to be made: graphs.",
        ),
        (
            "published figure5",
            "| gat, published (X) | 2,3 | 3-3 | .70 | .50 | +.20 | " + OF_MODEL["gat"],
        ),
        ("ensembles figure5 gat", "| 2,3 | gat (ensemble of 2) | .80 |  |"),
        ("claims figure5", "| figure5 | gat, bilstm_attention | c | undecided |  |"),
        ("claims figure5+table2", "| table2 |  | all claims | not measured |  |"),
        ("by_k figure5", "| 2,3,4 | gat | facts | nothing | 1,234 | 2 | .60 |  | .01 |"),
        ("by_test figure5 2,3", "| gat | nothing | 2 | .75 | .70 | .60 |"),
        ("by_k star", "*Not measured yet.*"),
    ],
)
def test_views(block: str, line: str) -> None:
    text = render.render(
        f"<!-- rendered: {block} -->\n<!-- end -->", {"figure5": part(ROWS, series=[])}
    )
    assert any(found.startswith(line) for found in text.splitlines()), text


@pytest.mark.parametrize(
    "block", ["by_j figure5", "by_k figure55", "made", "by_test figure5", "counts figure5"]
)
def test_wrong_blocks_are_refused(block: str) -> None:
    with pytest.raises(InputError, match=r"expected (one of|another)"):
        render.render(f"<!-- rendered: {block} -->\n<!-- end -->", {"figure5": part(ROWS)})


@pytest.mark.parametrize("damage", [{"rows": []}, {"columns": []}])
def test_a_damaged_record_is_one_line(damage: dict) -> None:
    with pytest.raises(InputError, match="by_k figure5: expected another part"):
        render.render(
            "<!-- rendered: by_k figure5 -->\n<!-- end -->", {"figure5": part(ROWS) | damage}
        )


def test_a_block_without_an_end_is_left_alone() -> None:
    found = {"figure5": part(ROWS, series=[])}
    last = render.render("<!-- rendered: made figure5 -->\n<!-- end -->\n", found)
    text = "<!-- rendered: made figure5 -->\nprose\n"
    assert render.render(text + last, found) == text + last


def test_published_rows_stand_next_to_models_that_were_given_the_same() -> None:
    """A part whose models have another prior, or were not measured, changes nothing."""
    given = {"gat": "genders", "bilstm_attention": "nothing", "given rules": "rules"}
    better = [row | {"accuracy": 1.0} for row in ROWS]
    unmeasured = [row | {"accuracy": None} for row in ROWS]
    found = {"figure5": part(ROWS, series=[]), "genders": part(better, given=given),
             "graphs": part(unmeasured)}  # fmt: skip
    for view in ("published", "by_k"):
        block = "<!-- rendered: {} figure5{} -->\n<!-- end -->"
        alone = render.render(block.format(view, ""), found).splitlines()
        lines = render.render(block.format(view, "+genders+graphs"), found).splitlines()
        below = [i for i, line in enumerate(lines) if "published (X)" in line]
        assert len(below) == 1 and lines[below[0]] in alone
        if view == "by_k":
            assert lines[below[0] - 1].startswith("| 2,3 | gat | facts | nothing |")


def test_commands_are_those_that_run(tmp_path) -> None:
    """The flags of a command in a page give the settings with which the part runs."""
    (tmp_path / "data_089907f8.zip").touch()
    (tmp_path / "data_db9b8f04.zip").touch()
    config = paper.load_part("genders", str(tmp_path))
    assert config.prover.share_genders and config.ctp_memory.share_genders
    names = {run.name for run in runs(config)}
    assert names == {f"{k}/{m}" for k in ("k23", "k234") for m in paper.WITH_GENDERS}
    text = " ".join(render.commands(["genders"]))
    for flag in paper.PARTS["genders"].flags("RELEASES"):
        assert f" {flag}" in text


def test_records_are_short_and_readable(tmp_path) -> None:
    results = part(ROWS, data=[], note="", versions={},
                   runs=[{"name": "k23/gat", "state": "not run"}])  # fmt: skip
    results["models"] = {"gat": results["models"]["gat"] | {
        "settings": {"heads": 5, "train": {"steps": 7, "replicas": 3}}}}  # fmt: skip
    results["rows"] = [measured(1 / 3, **{"train k": "2,3", "k": 2, "model": "gat"})]
    text = paper.record("figure5", results)
    (tmp_path / "figure5.json").write_text(text)
    found = paper.recorded(tmp_path)["figure5"]
    assert found["rows"][0]["accuracy"] == 0.3333 and found["unfinished"] == ["k23/gat"]
    assert found["models"]["gat"]["settings"] == {"heads": 5, "train.steps": 7}
    assert sum('"task"' in line for line in text.splitlines()) == len(results["rows"])
    (tmp_path / "figure5.json").write_text(text.replace('"rows"', '"row"'))
    with pytest.raises(InputError, match=r'figure5.json: damaged.*no "rows"'):
        paper.recorded(tmp_path)


def test_runs_that_parts_share_are_trained_once(tmp_path) -> None:
    for name in ("data_089907f8.zip", "data_db9b8f04.zip"):
        (tmp_path / name).touch()
    figure5, figure7 = (paper.load_part(part, str(tmp_path)) for part in ("figure5", "figure7"))
    for run in runs(figure5):
        folder = tmp_path / "figure5" / run.name
        folder.mkdir(parents=True)
        settings = identity(run) | {"stories": "fingerprint"}
        (folder / "config.json").write_text(json.dumps(settings))
        (folder / SUMMARY).touch()
        (folder.parent / DATA).touch()
    (tmp_path / "figure5/k23/bilstm_attention" / SUMMARY).unlink()
    paper.share_runs(figure7, tmp_path, tmp_path / "figure7")
    found = {
        str(p.relative_to(tmp_path / "figure7")) for p in tmp_path.glob(f"figure7/**/{SUMMARY}")
    }
    assert found == {f"redrawn/gat/{SUMMARY}"}
    assert (tmp_path / "figure7/redrawn" / DATA).exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure55"], 'part "figure55": expected one of demo, '),
        (["figure5"], "figure5: expected --data=DIR"),
        (["star", "--confg.seed=1"], '"--confg.seed=1": expected --config.NAME=VALUE'),
        (["demo", "star", "--config.only=rcc8/*"], 'only "rcc8/*": no such run'),
        (["demo", "figure5", "--data=none"], "none: no data_089907f8.zip in it"),
        (["star", "--config.gat.bogus=1"], 'no setting "config.gat.bogus"'),
        (["demo", "table1", "--config.only=*"], "table1 --config.only=*: expected no settings"),
    ],
)
def test_wrong_commands(arguments: list[str], message: str, tmp_path) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        paper.main([*arguments, f"--workdir={tmp_path}", f"--out={tmp_path}"])
    assert not any(tmp_path.iterdir())


def test_commit_is_empty_without_git(monkeypatch, tmp_path) -> None:
    assert paper.commit()
    monkeypatch.setattr(paper, "ROOT", tmp_path)
    assert paper.commit() == ""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert paper.commit() == ""


def test_estimate(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(paper, "recorded", lambda out: {"figure5": part(ROWS)})
    assert paper.main(["--estimate"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(paper.PARTS)
    assert "star              not measured yet" in lines
    assert "figure5           2.00 h on a device; still to be made: 1" in lines


def test_pages_are_for_the_settings_of_the_parts(monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(paper.ROOT)
    for out in ([], ["--out=results"], ["--out=docs/../results"]):
        with pytest.raises(InputError, match=r"--config\.seed=1: expected --out=DIR too"):
            paper.main(["star", "--config.seed=1", f"--workdir={tmp_path}", *out])


@pytest.mark.parametrize("wrong", ["out", "record", "run"])
def test_a_fault_is_found_before_anything_is_trained(wrong: str, tmp_path) -> None:
    out, workdir = tmp_path / "out", tmp_path / "runs"
    out.mkdir()
    if wrong == "out":
        out, message = tmp_path / "file", "file: expected a folder"
        out.touch()
    elif wrong == "record":
        (out / "table1.json").write_text('{"unfinished": 3}')
        message = "table1.json: damaged"
    else:
        (workdir / "star/rcc8/0/set_prover").mkdir(parents=True)
        (workdir / "star/rcc8/0/set_prover/notes.txt").touch()
        message = "notes.txt: not of a run"
    with pytest.raises(InputError, match=message):
        paper.main(["table1", "star", f"--workdir={workdir}", f"--out={out}"])
    assert not (workdir / "table1").exists()


@pytest.mark.parametrize("name", [name for name, one in RECORDED.items() if "models" in one])
def test_records_have_the_settings_of_their_parts(name: str, tmp_path) -> None:
    """So that the command above a table makes it."""
    for release in RELEASED:
        (tmp_path / f"{release}.zip").touch()
    record, all_runs = RECORDED[name], runs(paper.load_part(name, str(tmp_path)))
    finished = [run for run in all_runs if run.name not in record["unfinished"]]
    for model in dict.fromkeys(run.model for run in finished):
        of_model = [run for run in finished if run.model == model]
        trains = [run.config.train for run in of_model]
        settings = of_model[0].config[model].to_dict() | {"train": asdict(trains[0])}
        assert record["models"][model]["settings"] == changed_settings(model, settings)
        assert record["models"][model]["replicas"] == sum(train.replicas for train in trains)
    assert set(record["models"]) == {run.model for run in finished}


@pytest.mark.slow
def test_a_part_runs_and_resumes(tmp_path) -> None:
    folder = tmp_path / "runs/robustness"
    arguments = ["robustness", "--config.scale=smoke", f"--workdir={tmp_path}/runs",
                 f"--out={tmp_path}"]  # fmt: skip
    assert paper.main(arguments) == 0
    found = paper.recorded(tmp_path)["robustness"]
    assert list(found["models"]) == ["prover"] and not found["unfinished"]
    panels = {
        row["training stories, noise in the test"].partition(", ")[0] for row in found["rows"]
    }
    assert panels == {"1,000", "5,000", "20,000"}
    before = {path: path.stat().st_mtime_ns for path in folder.glob(f"**/{SUMMARY}")}
    shutil.rmtree(folder / "2500")
    assert paper.main([*arguments, "--config.only=500/*"]) == 0
    assert paper.recorded(tmp_path)["robustness"] == found  # which has more runs
    (tmp_path / "robustness.json").unlink()
    assert paper.main([*arguments, "--config.only=500/*"]) == 0
    assert paper.recorded(tmp_path)["robustness"]["unfinished"] == ["2500/0/prover"]
    assert paper.main(["wordings", *arguments[1:], "--config.only=none"]) == 0
    assert "wordings" not in paper.recorded(tmp_path)  # nothing was measured
    kept = [path for path in before if "2500" not in path.parts]
    assert kept and all(path.stat().st_mtime_ns == before[path] for path in kept)


def test_figures_show_curves(tmp_path) -> None:
    """A panel of one or two tests has no curve."""
    third = measured(0.5, **{"train k": "2,3", "k": 4, "model": "gat"})
    render.write_figures({"star": part([*ROWS, third]), "table2": part(ROWS)}, tmp_path)
    image = (tmp_path / "star.png").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["star.png"]
    of_curve = [row for row in ROWS if row["train k"] == "2,3"]
    render.write_figures({"star": part([*of_curve, third])}, tmp_path)
    assert (tmp_path / "star.png").read_bytes() == image
