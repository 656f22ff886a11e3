"""Published accuracies as data.

- `clutrr`: the tables of the CLUTRR papers, and people
- `ledger`: a row for each published model, with its source, data, and whether it is comparable
- `differences`: what differs in our model of the same name
"""
