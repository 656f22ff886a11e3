"""The devices that JAX runs on, and the CPU cores of this process."""

import os
import platform
from pathlib import Path

import jax


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
