"""Evaluation of predictions.

predictions    predictions of all replicas, and their files
metrics        registry of metrics, and their intervals
scores         the table of scores: a row for each series and test, and its summary over runs
claims         verdicts on claims about accuracies, from their intervals
baselines      given rules, induced rules, majority label
ground_truth   possible answers, predictions of baselines, verdicts on facts
proofs         proofs of labels and of predictions
extraction     precision and recall of the facts that a model extracts from a story, also by wording
attention      attention weights for the report page
frozen_states  stories as a pretrained encoder reads them, with its states if it is frozen
"""
