"""Tables of stories: files or rows in memory -> `Row` -> files.

readers   files, archives and data frames as rows of cells; a new format is a function of READERS
cells     parsers of cells, one for each column
dialects  names of columns: CLUTRR and its releases, STaR, rows of one's own
rows      rows of cells -> `Row`
columns   `Row` -> the published columns
"""
