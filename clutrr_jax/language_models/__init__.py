"""Prompts for language models, and readers of their answers or of any other predictions.

prompts       test stories as prompts, with solved examples
export        folders of prompts (`python -m clutrr_jax.language_models export`)
harnesses     files of the exports to lm-evaluation-harness and inspect_ai
inspect_task, inspect_scoring  the task of inspect_ai that is installed
reward        reward of answers, to train a language model
answers       free text about kinship -> relation
named_answers  text about any relations -> relation
marked_text   free text -> its normal form, its examples, and markers of an answer
statements    whose relations a text in the normal form states
harness_logs  logs of both harnesses -> answers
submissions   files of predictions and logs -> relations
"""
