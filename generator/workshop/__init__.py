"""The benchmark of 2018, CLUTRR v0.1 (Sinha et al. 2018).

data_set  `python -m generator workshop`: arguments and files
stories   random stories, and their rows in the published columns
paths     families and all simple paths in them (Algorithm 1, table 2)
rules     the relations, and rules that hold in every family
text      sentence templates for facts and distractors
"""
