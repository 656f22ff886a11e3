"""Figure 2 of Sinha et al. 2018: the same runs and report as `experiments/workshop_table1.py`.

Left: the accuracies for all pairs of train and test lengths. Right: their mean over the four
trainings for each test length, as an area plot; the published means are computed from table 1.
"""

from experiments.workshop_table1 import get_config

__all__ = ["get_config"]
