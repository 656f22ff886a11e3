"""The recorded results, the pages made from them, and the command that makes the results."""

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from clutrr_jax.experiment import SUMMARY, Run, runs
from clutrr_jax.launch import parse
from clutrr_jax.report.tables import changed_settings
from experiments import claims, figure5, paper, render, table2, views
from experiments.published.differences import OF_MODEL
from experiments.published.ledger import REPRODUCED, ROWS
from generator.errors import InputError

RECORDED = paper.recorded()


def runs_of(name: str, folder: Path) -> list[Run]:
    """The runs of a part, in a folder with empty released data sets."""
    for release in {*figure5.RELEASES.values(), *table2.RELEASES}:
        (folder / f"{release}.zip").touch()
    return runs(parse(["paper", *paper.flags(name, str(folder), paper.ROOT)])[1])


def test_pages_are_those_of_the_results() -> None:
    assert render.main(["--check"]) == 0


def test_results_are_those_of_finished_parts_at_one_commit() -> None:
    assert {path.stem for path in paper.RESULTS.glob("*.json")} <= {*paper.PARTS, *paper.SPEEDS}
    parts = [one for name, one in RECORDED.items() if name in paper.PARTS]
    assert len({one["commit"] for one in parts}) <= 1
    for part in parts:
        assert not part["commit"].endswith("dirty") and part.get("scale") != "smoke"
        assert not part.get("unfinished")


@pytest.mark.parametrize("name", ["results", "robustness", "studies", "workshop"])
def test_sentences_quote_no_accuracy(name: str) -> None:
    """Numbers stand in tables, which are rendered, so that no sentence can contradict them."""
    text = (paper.ROOT / f"docs/{name}.md").read_text()
    assert not re.findall(r"(?<![\w.-])[01]?\.\d\d\b", render.BLOCK.sub("", text))


def test_every_part_is_on_a_page() -> None:
    pages = "".join((paper.ROOT / page).read_text() for page in render.PAGES)
    shown = {name for _, _, words, _ in render.BLOCK.findall(pages)
             for parts in words.split()[:1] for name in parts.split("+")}  # fmt: skip
    assert shown == {*paper.PARTS, *paper.SPEEDS}


def test_remarks_belong_to_claims_and_published_rows() -> None:
    tables = (claims.FIGURE_5, claims.FIGURE_6, claims.FIGURE_7, claims.TABLE_2, claims.TABLE_4,
              claims.WORKSHOP_TABLE_1)  # fmt: skip
    stated = {statement for table in tables for of_question in table.values()
              for statement in of_question}  # fmt: skip
    assert claims.REASONS.keys() <= stated
    assert {row.model for row in ROWS if row.model} == set(OF_MODEL)


@pytest.mark.parametrize("name", ["figure5", "structured", "graphs", "stories", "slow", "genders"])
def test_recorded_published_rows_are_those_of_the_ledger(name: str) -> None:
    recorded = [(row["train k"], row["k"], row["name"], row["accuracy"], row["source"])
                for row in RECORDED[name]["rows"] if "source" in row]  # fmt: skip
    assert recorded == [(train, k, row.label, accuracy.mean, str(row.source))
                        for train, row, _ in figure5.references()
                        for k, accuracy in row.by_k.items()]  # fmt: skip


def test_pages_with_tables_of_the_papers_say_that_the_stories_are_others() -> None:
    pages = [page for page in render.PAGES
             if "<!-- rendered: grid" in (paper.ROOT / page).read_text()]  # fmt: skip
    assert pages == ["docs/robustness.md", "docs/workshop.md"]
    for page in pages:
        assert "other stories" in " ".join((paper.ROOT / page).read_text().split())
    assert all(row.differs.startswith("other stories") for row in REPRODUCED)


def test_ledger_says_which_rows_are_comparable() -> None:
    lines = views.ledger()
    assert sum(line.startswith("| ") for line in lines) == len(ROWS) + 1
    assert sum(line.startswith("- ") for line in lines) == len({row.source.title for row in ROWS})
    line = next(line for line in lines if line.startswith("| Edge Transformer | "))
    assert "data_9b2173cf | 15,000 " in line and "no: no clauses held out" in line
    assert next(line for line in lines if line.startswith("| R5 | ")).endswith("| yes |")


@pytest.mark.parametrize("block", ["by_j figure5", "by_k figure55", "made"])
def test_wrong_blocks_are_refused(block: str) -> None:
    with pytest.raises(InputError, match="expected one of"):
        render.render(f"<!-- rendered: {block} -->\n<!-- end -->", RECORDED)


def test_commands_are_those_that_run(tmp_path) -> None:
    """The command above a table names parts, and their flags give the settings of their runs."""
    found = runs_of("genders", tmp_path)
    assert {run.name for run in found} == {
        f"{k}/{model}" for k in ("k23", "k234") for model in paper.WITH_GENDERS
    }
    assert all(run.config[run.model].share_genders for run in found)
    page = (paper.ROOT / "docs/results.md").read_text()
    (command,) = re.findall(r"`python -m experiments.paper (.* genders .*?)`", page)
    assert {*command.split()} <= {*paper.PARTS, "--data=RELEASES"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure55"], 'part "figure55": expected one of demo, '),
        (["demo", "figure5"], "figure5: expected --data=DIR"),
        (["demo", "star", "--confg.seed=1"], '"--confg.seed=1": expected --config.NAME'),
        (["demo", "star", "--config.gat.bogus=1"], 'no setting "config.gat.bogus"'),
    ],
)
def test_wrong_commands_train_nothing(arguments: list[str], message: str, tmp_path) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        paper.main([*arguments, f"--workdir={tmp_path}", f"--out={tmp_path}"])
    assert not any(tmp_path.iterdir())


def test_commit_is_empty_without_git(monkeypatch, tmp_path) -> None:
    assert paper.commit()
    monkeypatch.setattr(paper, "ROOT", tmp_path)
    assert paper.commit() == ""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert paper.commit() == ""


@pytest.mark.parametrize("name", [name for name, one in RECORDED.items() if "models" in one])
def test_records_have_the_settings_of_their_parts(name: str, tmp_path) -> None:
    """So that the command above a table makes it."""
    record = RECORDED[name]
    finished = [run for run in runs_of(name, tmp_path) if run.name not in record["unfinished"]]
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
    arguments = ["--config.scale=smoke", f"--workdir={tmp_path}/runs", f"--out={tmp_path}"]
    assert paper.main(["robustness", *arguments]) == 0
    found = paper.recorded(tmp_path)["robustness"]
    assert list(found["models"]) == ["prover"] and not found["unfinished"]
    before = {path: path.stat().st_mtime_ns for path in folder.glob(f"**/{SUMMARY}")}
    assert {path.relative_to(folder).parts[0] for path in before} == {"500", "2500", "10000"}
    (folder / "2500/0/prover" / SUMMARY).unlink()
    assert paper.main(["robustness", *arguments, "--config.only=500/*"]) == 0
    assert paper.recorded(tmp_path)["robustness"]["unfinished"] == ["2500/0/prover"]
    assert paper.main(["wordings", *arguments, "--config.only=none"]) == 0
    assert paper.main(["table1", *arguments[1:]]) == 0
    assert paper.recorded(tmp_path).keys() == {"robustness", "table1"}
    kept = [path for path in before if "2500" not in path.parts]
    assert all(path.stat().st_mtime_ns == before[path] for path in kept)


def test_figures_show_curves(tmp_path) -> None:
    """Tests of several paths have two lengths, which are no curve."""
    star = RECORDED["star"]
    curves = [row for row in star["rows"] if row["algebra, paths"].endswith("b = 1")]
    for name, rows in (("all", star["rows"]), ("curves", curves)):
        (tmp_path / name).mkdir()
        render.write_figures({"star": star | {"rows": rows}}, tmp_path / name)
    one, other = ((tmp_path / name / "star.png").read_bytes() for name in ("all", "curves"))
    assert one == other and len(curves) < len(star["rows"])


def test_published_rows_stand_below_models_that_were_given_the_same() -> None:
    """In the tables by k of the pages, whatever the other parts of a table hold."""
    seen = 0
    for page in render.PAGES:
        own: tuple[str, ...] = ()
        for line in (paper.ROOT / page).read_text().splitlines():
            cells = [cell.strip() for cell in line.split("|")[1:-1]]
            place = next((i for i, cell in enumerate(cells[:3]) if cell in ("facts", "story")), 0)
            if not place:
                continue
            name, reads, given = cells[place - 1 : place + 2]
            if ", published (" in name:
                assert own == (name.partition(",")[0], reads, given), f"{page}: {line}"
                seen += 1
            else:
                own = name, reads, given
    assert seen > 5


def accuracies(name: str, series: str) -> dict[tuple, tuple[float, int]]:
    """Accuracy and stories of a series of a part by (panel, x)."""
    panel, x, _ = RECORDED[name]["columns"]
    rows = [row for row in RECORDED[name]["rows"] if row["name"] == series]
    return {(row[panel], row[x]): (row["accuracy"], row["count"]) for row in rows}


def test_induced_rules_are_the_row_to_beat() -> None:
    """As docs/results.md, docs/studies.md, docs/robustness.md and README.md say."""
    counted = accuracies("figure5", "induced rules")
    parts = ("figure5", "structured", "graphs", "transformers", "stories", "slow", "genders")
    for name in parts:
        for model in RECORDED[name]["models"]:
            for (panel, k), (accuracy, stories) in accuracies(name, model).items():
                if panel == "2,3" and k >= 4:
                    assert (accuracy - counted[panel, k][0]) * stories <= 1
    for name in ("leaderboard", "star"):
        assert {found for found, _ in accuracies(name, "induced rules").values()} == {1.0}
    found, learned = (accuracies("robustness", name) for name in ("induced rules", "prover"))
    few, many = ("1,000, clean", 10), ("20,000, clean", 10)
    assert found[few][0] < 0.6 and learned[few][0] == found[many][0] == 1
    found, learned = (accuracies("scaling", name) for name in ("induced rules", "prover"))
    few, many = ("k = 10", 300), ("k = 10", 10_000)
    assert found[few][0] + 0.4 < learned[few][0] and found[many][0] == learned[many][0] == 1
