"""The CLUTRR benchmark generator, without JAX, and the base library of the project.

Each module imports only from those above it. Input that cannot be used (a file, a setting, an
argument) raises `errors.InputError`, whose message is one line.

errors         errors that the user can fix, and how commands report them
files, cells   reads and writes files; rows of text; aligned tables
kinship        relations and their composition rules
names          names of people
deduction      relations that stated facts imply
columns        one row of a data set: columns as text, and their checks
data_sets      all rows of a data set from any files
config         settings of a generated data set
stories/       random stories: facts, then sentences
paraphrases/   sentences for facts: embedded, imported or plain
write          files of a generated data set
audit          checks of any data set
workshop/      the benchmark of 2018
benchmark/     fixed releases; diagnostic data sets
command        `python -m generator`
"""

VERSION = "0.1.0"
