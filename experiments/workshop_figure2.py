"""Table 1 as a picture: figure 2 of Sinha et al. 2018.

Left the accuracies of all pairs of train and test lengths, right their mean over the four trainings
for each test length, as areas. The runs are those of table 1, whose report shows both: the curves
of each training and a panel of the means, and in report.html the pairs as heat maps.

    python launch.py --config=experiments/workshop_figure2.py --workdir=runs/workshop_table1 \\
        --config.scale=laptop

The picture has no numbers. Its caption says "the mean testing accuracy as an area plot across the
test data subsets", which is read here as one mean for each of them; the paper's means are computed
from its table 1.
"""

from experiments.workshop_table1 import get_config

__all__ = ["get_config"]
