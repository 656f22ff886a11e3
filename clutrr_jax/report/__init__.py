"""The report of a run, rebuilt from the outputs of its models without training.

- `results`: reads the outputs of each model once and computes `results.json`.
- `tables`: tables of accuracies as cells, plain text and Markdown (`results.md`).
- `plots`: `curve.png`, accuracy against clause length.
- `page`: assembles one self-contained HTML file from `template/` and a JSON object; also used for
  the page of a grid, whose JSON object is built in `experiments.grid.report`.
- `run_page`: the JSON object of `report.html`; `graphs`: its part on proofs and on graphs that
  models extract from the text.
- `write`: writes all four files of a run. `python -m clutrr_jax.report RUN` calls it.
- `scoring`: scores and paired tests of predictions from files (`python -m clutrr_jax.score`).
"""
