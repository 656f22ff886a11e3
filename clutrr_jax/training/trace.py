"""Profiler traces of an epoch, whose events are named by the part of a step that they belong to."""

import gzip
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

import jax

from generator.errors import InputError

PARTS = ("pack", "forward", "backward", "update")  # scopes of `steps`


@contextmanager
def tracing(folder: str, program: str) -> Iterator[None]:
    """Writes a trace of what runs in this context, given the text of the compiled program. Raises
    InputError if the folder cannot be written."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise InputError(f"setting trace: {folder} cannot be written ({error})") from None
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # else mostly calls of Python functions
    with jax.profiler.trace(folder, profiler_options=options):
        yield
    traces = Path(folder).glob("plugins/profile/*/*.trace.json.gz")
    if newest := max(traces, key=lambda path: path.stat().st_mtime_ns, default=None):
        name_parts(newest, parts_of(program))


def parts_of(program: str) -> dict[str, str]:
    """Part of a step of each operation of a compiled program, by name."""
    found = {}
    for name, scopes in re.findall(r'%?([\w.-]+) = .*op_name="([^"]*)"', program):
        if part := next((scope for scope in scopes.split("/") if scope in PARTS), None):
            found[name] = part
    return found


def name_parts(trace: Path, parts: dict[str, str]) -> None:
    """Puts the part of a step before the name of each operation in a trace."""
    content = json.loads(gzip.decompress(trace.read_bytes()))
    for event in content["traceEvents"]:
        if part := parts.get(event.get("args", {}).get("hlo_op")):
            event["name"] = f"{part}: {event['name']}"
    trace.write_bytes(gzip.compress(json.dumps(content).encode()))
