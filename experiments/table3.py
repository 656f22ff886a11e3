"""Table 3 of Sinha et al. 2019: the same runs and report as `experiments/table2.py`."""

from experiments.table2 import get_config

__all__ = ["get_config"]
