"""Imports run one way: a module imports from its own room, and from rooms below."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
# From the ground up. Rooms of one line do not import each other.
ROOMS = """
generator.errors
generator.relations.algebra
generator.relations.kinship generator.relations.deduction generator.relations.path_consistency
generator.splits
generator.files
generator.tables.cells
generator.tables.readers
generator.relations
generator.tables
generator.implied
generator.checks
generator.data_sets
generator.stories
generator.paraphrases
generator.write
generator.workshop generator.benchmark generator.networks
generator.named generator.contradictions
generator.audit generator.command
generator.__main__
clutrr_jax.streams clutrr_jax.cli clutrr_jax.devices
clutrr_jax.data
clutrr_jax.models
clutrr_jax.settings
clutrr_jax.evaluation
clutrr_jax.experiment
clutrr_jax.language_models
clutrr_jax.training
clutrr_jax.run clutrr_jax.report
clutrr_jax.runs clutrr_jax.score clutrr_jax.trained_model
clutrr_jax.command_line clutrr_jax.counts clutrr_jax.slurm
clutrr_jax.user_files
clutrr_jax.predict clutrr_jax.launch
clutrr_jax.rules
clutrr_jax.__main__
clutrr_jax.api
experiments
launch benchmarks
""".strip().splitlines()
FLOOR = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms.split()}


def room(module: str) -> str | None:
    """The room of a module, or None for a module of another project."""
    parts = module.split(".")
    return next((name for n in (3, 2, 1) if (name := ".".join(parts[:n])) in FLOOR), None)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_imports_run_downwards() -> None:
    packages = ("generator", "clutrr_jax", "experiments", "benchmarks")
    paths = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    for path in (ROOT / "launch.py", *paths):
        file = path.relative_to(ROOT)
        if path.name == "__init__.py" or "harnesses" in file.parts:
            continue
        here = room(".".join(file.with_suffix("").parts))
        assert here, f"{file}: expected a line in ROOMS"
        for module in imports(path):
            there = room(module)
            assert there in (None, here) or FLOOR[there] < FLOOR[here], f"{file} imports {module}"


def test_the_picture_of_the_rooms_is_that_of_the_imports() -> None:
    """An arrow of docs/contributing.md leads from a room to one that it imports. Those that follow
    from others are left out."""
    text = (ROOT / "docs" / "contributing.md").read_text()
    picture = re.search(r"```mermaid\n(.*?)```", text, re.DOTALL)[1]
    names = re.findall(r"^ +(\w+)\[\"<b>([\w./]+)</b>", picture, re.MULTILINE)
    modules = {path.replace("/", ".").removesuffix(".py"): node for node, path in names}

    def node(module: str) -> str | None:
        parts = module.split(".")
        found = (".".join(parts[:n]) for n in (2, 1))
        return next((modules[name] for name in found if name in modules), None)

    imported: dict[str, set[str]] = {name: set() for name in modules.values()}
    for package in ("generator", "clutrr_jax", "experiments"):
        for path in (ROOT / package).rglob("*.py"):
            here = node(".".join(path.relative_to(ROOT).with_suffix("").parts))
            if here and path.name != "__init__.py":
                imported[here] |= {there for m in imports(path) if (there := node(m))} - {here}

    def below(room: str) -> set[str]:
        return imported[room].union(*map(below, imported[room]))

    expected = {
        (above, room)
        for above, rooms in imported.items()
        for room in rooms
        if not any(room in below(other) for other in rooms)
    }
    assert set(re.findall(r"(\w+) --> (\w+)", picture)) == expected
