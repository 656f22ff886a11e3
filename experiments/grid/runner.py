"""Runs the cells of a grid, in this process or as Slurm jobs, and writes the report."""

import sys
from pathlib import Path
from traceback import format_exc

from ml_collections import ConfigDict

from clutrr_jax.command import FolderLocked
from clutrr_jax.run import WriteStories, check_or_write_config, has_begun, identity, run
from experiments.grid import definition, report, slurm
from experiments.grid.measured import is_finished
from experiments.loader import one_line
from generator.cells import plain_text
from generator.errors import InputError
from generator.files import write_text


def run_grid(
    config: ConfigDict, workdir: Path, launcher: str, options: ConfigDict, command: list[str]
) -> int:
    """Runs the unfinished cells of a grid and writes its report.

    Args:
      config: the settings of the grid.
      workdir: the folder of the grid, with one folder per cell.
      launcher: "local" runs in this process; "slurm" submits jobs and waits for them; "job" runs
        without writing a report, since other cells run at the same time.
      options: the options of Slurm jobs, see `slurm.settings`.
      command: the command line of this process, which Slurm jobs repeat.
    Returns:
      1 if a cell failed, else 0.
    Raises:
      InputError: a wrong setting, or the folder holds cells with other settings.
    """
    cells = definition.cells(config)
    selected = definition.select(config, cells)
    if launcher == "job":
        return 1 if run_here(selected, workdir, config.grid.write_stories) else 0
    report.check_folder(workdir, config.name)
    for cell in cells:
        path = workdir / cell.name / "config.json"
        if has_begun(path.parent) or ((path.parent / slurm.JOB_ID).exists() and path.exists()):
            check_or_write_config(path, identity(cell.config))
    unfinished = [cell.name for cell in selected if not is_finished(workdir / cell.name)]
    if launcher == "slurm" and unfinished:
        cluster = slurm.Slurm(config.name, workdir / "slurm", options)
        command = [*command, "--launcher=job", "--config.only"]
        failed = slurm.Jobs(workdir, command, cluster).run(unfinished)
    else:
        failed = run_here(selected, workdir, config.grid.write_stories)
    results, table = report.write(config, cells, workdir)
    print(f"\n{plain_text(table)}\n\n{report.claims_text(results)}")
    print(f"\nReport: {workdir / 'report.html'}")
    for name, reason in failed.items():
        print(f"failed: {name}: {reason}", file=sys.stderr)
    return 1 if failed else 0


def run_here(
    cells: list[definition.Cell], workdir: Path, write_stories: WriteStories
) -> dict[str, str]:
    """Runs the unfinished cells one after the other. Returns {name of a failed cell: reason}."""
    failed = {}
    for index, cell in enumerate(cells, start=1):
        folder = workdir / cell.name
        if is_finished(folder):
            continue
        print(f"\n[{index}/{len(cells)}] {cell.name}", flush=True)
        (folder / report.ERROR).unlink(missing_ok=True)
        try:
            run(cell.config, folder, write_stories)
        except FolderLocked:
            print("Skipped: another process is running it.", flush=True)
        except BrokenPipeError:  # of stdout
            raise
        except Exception as error:  # the other cells run, whatever the error
            failed[cell.name], trace = one_line(error), ""
            if not isinstance(error, InputError):
                failed[cell.name] += f" (traceback in {folder / report.ERROR})"
                trace = format_exc()
            write_text(folder / report.ERROR, f"{failed[cell.name]}\n{trace}")
            print(f"failed: {failed[cell.name]}", file=sys.stderr, flush=True)
    return failed
