"""The CLUTRR benchmark generator, without JAX, and the base library of the project.

Each module imports only from those above it. Input that cannot be used (a file, a setting, an
argument) raises `errors.InputError`, whose message is one line.

errors         errors that the user can fix, and how commands report them
files          JSON, atomic writing, arrays of a run
relations/     relation algebras as data, and what follows from facts
tables/        tables of stories: readers, dialects, cells, rows
data_sets, splits  all rows of a data set from any files
checks, implied  checks of any data set
stories/       random stories: settings, facts, then sentences
paraphrases/   sentences for facts: embedded, imported or plain
write          files of a generated data set
networks/      random graphs of facts of any algebra
workshop/      the benchmark of 2018
benchmark/     fixed releases; diagnostic data sets
named          data sets by name, in the cache folder
audit, command  `python -m generator audit`, `python -m generator`
"""

VERSION = "0.1.0"
