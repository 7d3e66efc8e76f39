"""Imports go one way: a part may import only from parts above it in this list."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import f2a_tune

LAYERS = (
    "checks",
    "logging",
    "clock",
    "interrupts",
    "_compat",
    "outcome",
    "bandit",
    "racing",
    "cutoff",
    "optuna_plugin",
    "sklearn_plugin",
    "reading",
    "visualization",
    "report",
    "cli",
)
# What a part may never import, however it is written.
FORBIDDEN = {
    "bandit": {"optuna", "sklearn", "multiprocessing", "subprocess", "time"},
    "racing": {"optuna", "sklearn", "multiprocessing", "subprocess", "time"},
}
ROOT = Path(f2a_tune.__file__).parent
FILES = [path for path in sorted(ROOT.rglob("*.py")) if path.parent != ROOT or path.stem in LAYERS]


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_modules(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write absolute imports"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_up_only(path):
    part = part_of(path)
    allowed = LAYERS[: LAYERS.index(part) + 1]
    for name in imported_modules(path):
        head, *rest = name.split(".")
        if head == "f2a_tune" and rest[0] in LAYERS:
            assert rest[0] in allowed, f"{path} imports {name} from below"
        assert head not in FORBIDDEN.get(part, ()), f"{path} may not import {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_clock_reads_the_time(path):
    if part_of(path) != "clock":
        heads = {name.split(".")[0] for name in imported_modules(path)}
        assert "time" not in heads, f"{path} must ask f2a_tune.clock"


def test_every_part_has_its_place():
    parts = {part_of(path) for path in ROOT.rglob("*.py")} - {"__init__", "__main__"}
    assert parts <= set(LAYERS)


def test_importing_is_light():
    heavy = ["numba", "plotly", "matplotlib", "pandas", "optuna", "sklearn"]
    code = (
        "import sys, f2a_tune, f2a_tune.bandit\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
