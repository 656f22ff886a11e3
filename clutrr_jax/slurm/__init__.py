"""Runs of an experiment as jobs of a Slurm cluster."""
