"""Published accuracies as data.

- `clutrr`: the tables of the CLUTRR papers, and people
- `systematic`: other work on the released data sets, by clause length k (figure 5)
"""
