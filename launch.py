"""Trains and tests models on CLUTRR: `python launch.py --help`.

The same command as `python -m clutrr_jax train`, in this folder.
"""

import sys

from clutrr_jax.launch import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], "python launch.py"))
