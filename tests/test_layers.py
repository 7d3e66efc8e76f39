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
    "outcome",
    "bandit",
    "racing",
    "growth",
    "cutoff",
    "study",
    "runtime",
    "optuna_plugin",
    "sklearn_plugin",
    "visualization",
    "report",
    "cli",
)
# What a part may never import, however it is written.
FORBIDDEN = {
    "bandit": {"optuna", "sklearn", "multiprocessing", "subprocess", "time"},
    "racing": {"optuna", "sklearn", "multiprocessing", "subprocess", "time"},
}
SIBLINGS = ("optuna_plugin", "sklearn_plugin")
LONGEST_FILE, LONGEST_FUNCTION = 400, 40
ROOT = Path(f2a_tune.__file__).parent
PRIVATE_MODULES = (
    ROOT / "study" / "optuna_private.py",
    ROOT / "sklearn_plugin" / "sklearn_private.py",
)
# Private names of the standard library that have no public equivalent.
STANDARD_LIBRARY_NAMES = {"_exit", "_fields"}
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


@pytest.mark.parametrize(("part", "sibling"), [SIBLINGS, SIBLINGS[::-1]])
def test_siblings_never_import_each_other(part, sibling):
    for path in (ROOT / part).rglob("*.py"):
        for name in imported_modules(path):
            assert not name.startswith(f"f2a_tune.{sibling}"), f"{path} imports {name}"


def private_names(path: Path) -> set[str]:
    """Private modules and attributes of other packages that a file uses."""
    tree = ast.parse(path.read_text())
    found = {
        name
        for name in imported_modules(path)
        if not name.startswith(("f2a_tune", "__future__"))
        and any(part.startswith("_") and part != "__version__" for part in name.split("."))
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            name = node.attr
            if not name.startswith("__") and name not in OUR_PRIVATE_NAMES:
                found.add(name)
    return found


def our_private_names() -> set[str]:
    """Private names that are defined somewhere in the package."""
    found = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
    return found - {"_storage", "_study_id", "_stop_flag", "_thread_local"}


OUR_PRIVATE_NAMES = our_private_names()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_private_names_of_other_packages_are_in_one_module_each(path):
    if path not in PRIVATE_MODULES:
        assert private_names(path) <= STANDARD_LIBRARY_NAMES


def test_the_modules_for_private_names_use_some():
    for path in PRIVATE_MODULES:
        assert private_names(path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_are_short(path):
    text = path.read_text()
    assert text.count("\n") <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            length -= sum(
                inner.end_lineno - inner.lineno
                for inner in body
                if isinstance(inner, ast.FunctionDef)  # counted by itself
            )
            assert length <= LONGEST_FUNCTION, f"{path}: {node.name} has {length} lines"


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
