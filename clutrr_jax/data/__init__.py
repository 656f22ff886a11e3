"""Data sets, from files to batches.

records     stories as flat NumPy arrays and text: `Records`
vocabulary  words of stories as token ids
dataset     published files and tables in memory -> `Dataset` of train and test records
arrays      records as flat arrays on the device: `StoryArrays`
batching    shapes of batches, and their packing inside jitted programs
prepare     a data set ready for training and evaluation: `Prepared`
"""
