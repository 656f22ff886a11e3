"""The report of an experiment, rebuilt from the folders of its runs without training.

- `results`: computes `results.json` from the folders of the runs.
- `tables`: tables of accuracies as cells; `markdown`: these as Markdown (`results.md`).
- `headline`: the result in words.
- `export`: `results.csv`, one row per replica, and `results.tex`, the table as LaTeX; paired tests.
- `citations`: BibTeX of the benchmark and the models.
- `plots`: `curve.png`, `.pdf` and `.svg`, accuracy against clause length.
- `outputs`: predictions, attention and extracted graphs of the runs whose stories the page shows.
- `page_content`: the JSON object of `report.html`; `graphs`: its part on proofs and on graphs that
  models extract from the text; `page`: assembles one HTML file from `template/` and that object.
- `write`: writes all files. `python -m clutrr_jax.report FOLDER` calls it.
"""
