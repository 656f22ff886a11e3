"""Benchmark releases: data sets whose settings, and therefore bytes, never change."""
