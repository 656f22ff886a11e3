"""The CLUTRR benchmark generator, without JAX, and the base library of the project.

Each module imports only from those above it. Input that cannot be used (a file, a setting, an
argument) raises `errors.InputError`, whose message is one line.

errors         errors that the user can fix, and how commands report them
files          JSON, atomic writing, arrays of a run
algebra        relations, inverses and composition tables as data
kinship        the relations of families and their composition rules
algebras/      RCC-8, Allen's intervals, and those of users
names          names of people
deduction      relations that stated facts imply by rules
path_consistency  relations that stated facts leave possible
tables/        tables of stories: readers, dialects, cells, rows
data_sets      all rows of a data set from any files
config         settings of a generated data set
stories/       random stories: facts, then sentences
paraphrases/   sentences for facts: embedded, imported or plain
networks       random graphs of facts of any algebra
write          files of a generated data set
audit, network_audit  checks of any data set
workshop/      the benchmark of 2018
benchmark/     fixed releases; diagnostic data sets
networks_command  `python -m generator --algebra NAME`
command        `python -m generator`
"""

VERSION = "0.1.0"
