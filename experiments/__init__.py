"""What to run: one file per experiment, read by `launch.py --config=experiments/NAME.py`."""
