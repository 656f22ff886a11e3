"""The CLUTRR benchmark generator: families, facts, proofs, noise and stories. NumPy only."""

VERSION = "0.1.0"
