"""Experiments: one file per table or figure, run by `launch.py --config=experiments/NAME.py`."""
