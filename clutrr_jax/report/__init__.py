"""The report of an experiment, rebuilt from the folders of its runs without training.

- `results`: computes `results.json`, the table of all scores, which every other module reads.
- `accuracy`: this table as typed lines; `tables`: training, settings, extraction, and texts;
  `markdown`: these as Markdown (`results.md`); `headline`: the result in words.
- `export`: `results.csv`, one row per replica, and `results.tex`; `paired`: paired tests.
- `evaluation`: scores of predictions of any model, what `evaluate`, `train` and `score` show.
- `citations`: BibTeX of the benchmark and the models.
- `plots`: `curve.png`, `.pdf` and `.svg`, accuracy against clause length.
- `outputs`: predictions, attention and extracted graphs of the runs whose stories the page shows.
- `page_content`: the JSON object of `report.html`; `graphs`: its part on proofs and on graphs that
  models extract from the text; `page`: assembles one HTML file from `template/` and that object.
- `write`: writes all files. `python -m clutrr_jax.report FOLDER` calls it.
"""
