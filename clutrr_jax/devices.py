"""The devices that JAX runs on, and the CPU cores and memory of this process."""

import math
import os
import platform
import re
import sys
from pathlib import Path

import jax
from tqdm import tqdm


def device_name() -> str:
    """Description of the devices that JAX runs on."""
    devices = jax.local_devices()
    count = jax.process_count()
    hosts = f", on each of {count} hosts" if count > 1 else ""
    if devices[0].platform != "cpu":
        kind = f"{devices[0].device_kind} ({devices[0].platform.upper()})"
        return f"{len(devices)} x {kind}{hosts}"
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cores = f"{len(devices)} core{'s' if len(devices) > 1 else ''}"
    return f"{cores} of {names[0] if names else platform.machine()} (CPU){hosts}"


def available_cores() -> int:
    """Returns the number of CPU cores of this process, or of the Slurm job it runs in."""
    if "SLURM_CPUS_ON_NODE" in os.environ:
        return int(os.environ["SLURM_CPUS_ON_NODE"])
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_memory() -> float:
    """Returns the bytes that are free on this machine, or in the container of this process."""
    info, limit = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")
    if not info.exists():
        return math.inf
    free = 1024 * int(re.findall(r"MemAvailable: +(\d+) kB", info.read_text())[0])
    if limit.exists() and (most := limit.read_text().strip()) != "max":
        pages = int(Path("/proc/self/statm").read_text().split()[1])  # of this process
        free = min(free, int(most) - pages * os.sysconf("SC_PAGE_SIZE"))
    return free


def warn_if_too_large(what: str, needed: float, free: float) -> None:
    """Prints a line if something needs more bytes than are free. It goes on, as both are
    estimates."""
    if needed > free:
        tqdm.write(
            f"warning: {what} needs about {needed / 1e9:.2g} GB, {max(free, 0) / 1e9:.2g} GB are "
            "free; it may end for lack of memory",
            file=sys.stderr,
        )
