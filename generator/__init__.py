"""The CLUTRR benchmark generator, without JAX.

It also is the base library of the project: errors, files and data set formats.
"""

VERSION = "0.1.0"
