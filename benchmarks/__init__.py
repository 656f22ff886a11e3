"""Speed measurements: `python -m benchmarks --help`."""
