"""The report of an experiment, rebuilt from the folders of its runs without training.

- `results`: computes `results.json`, the table of all scores, which every other module reads.
- `accuracy`: this table as typed lines; `tables`: training, settings, extraction, and texts, as
  Markdown (`results.md`) and HTML; `headline`: the result in words.
- `export`: `results.csv`, one row per replica, and `results.tex`; `paired`: paired tests.
- `evaluation`: scores of predictions of any model, what `evaluate`, `train` and `score` show.
- `plots`: `curve.png`, `.pdf` and `.svg`, accuracy against clause length.
- `outputs`: predictions, attention and extracted graphs of the runs whose stories the page shows.
- `page`: `report.html`, one file from `template/` and a JSON object; `graphs`: its part on proofs
  and on graphs that models extract from the text.
- `write`: writes all files. `python -m clutrr_jax.report FOLDER` calls it, or
  prints BibTeX of the benchmark and the models.
"""
