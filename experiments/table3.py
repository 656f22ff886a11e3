"""More on robustness: table 3 of Sinha et al. 2019 (appendix 1.4).

Its trainings are those of table 2, which shows both.

    python launch.py --config=experiments/table3.py --workdir=runs/table2 \\
        --config.scale=laptop --config.data=path/to/releases
"""

from experiments.table2 import get_config

__all__ = ["get_config"]
