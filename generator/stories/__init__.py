"""Random stories: facts, then sentences.

Each module imports only from those above it.

family       random families, without genders
closure      all facts of a family, and the rule applications that derive them
clause       chains of facts that prove a target fact, by backward chaining
noise        noise facts: walks that the proof does not use, and the noise types
names        names of people
config       settings of a generated data set
clause_sets  all clauses of a length, split into train and test clauses
sample       batches of stories as arrays: `Stories`
blocks       blocks of stories with random numbers of their own
text         sentences for the facts of stories from a `Bank` of paraphrases
hold_out     paraphrases for training and paraphrases for tests
render       blocks as rows of CSV, JSON Lines or Parquet
"""
