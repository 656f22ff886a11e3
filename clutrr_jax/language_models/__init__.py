"""Prompts for language models, and scores of their output or of any other predictions.

prompts      test stories as prompts, with solved examples (`python -m clutrr_jax.prompts`)
answers      free text -> relation
submissions  files of predictions in CSV or JSON Lines
scoring      accuracies next to the baselines and paired tests (`python -m clutrr_jax.score`)
"""
