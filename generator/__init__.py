"""The CLUTRR benchmark generator: families, facts, proofs, noise and stories. NumPy only."""
