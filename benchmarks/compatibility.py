"""Writes docs/compatibility.md from the results of the tests in tests/neighbours.

python benchmarks/compatibility.py [--output docs/compatibility.md]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "optuna",
    "scikit-learn",
    "lightgbm",
    "xgboost",
    "catboost",
    "optuna-integration",
    "optuna-dashboard",
    "imbalanced-learn",
    "category_encoders",
    "skops",
    "polars",
    "pandas",
    "grpcio",
)
TITLES = {
    "test_boosting": "Boosting libraries in `F2ASearchCV`",
    "test_dashboard": "optuna-dashboard",
    "test_optuna_parts": "Parts of Optuna with `WaitUCBSampler` and `optimize`",
    "test_sklearn_parts": "Parts of scikit-learn, and libraries around it",
}
HEAD = """# What works with what

`python benchmarks/compatibility.py` generates this page by running the tests in `tests/neighbours`
with the installed libraries. Date: {date}. Python {python}.

| library | version |
|---|---|
{versions}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "compatibility.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "-m",
            "slow",
            "tests/neighbours",
        ]
        subprocess.run([*command, f"--junitxml={report}"], cwd=ROOT, check=False)
        cases = list(ElementTree.parse(report).iter("testcase"))
    arguments.output.write_text(_page(cases))


def _page(cases: list[ElementTree.Element]) -> str:
    lines = []
    for name in PACKAGES:
        try:
            lines.append(f"| {name} | {importlib.metadata.version(name)} |")
        except importlib.metadata.PackageNotFoundError:
            lines.append(f"| {name} | not installed |")
    python = ".".join(str(part) for part in sys.version_info[:3])
    text = HEAD.format(date=date.today(), python=python, versions="\n".join(lines))
    groups: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for case in cases:
        test, _, variant = case.get("name", "").partition("[")
        what = test.removeprefix("test_").replace("_", " ")
        group = case.get("classname", "").rpartition(".")[2]
        groups[group][what].append(_result(case, variant.rstrip("]")))
    for group, rows in sorted(groups.items()):
        text += f"\n## {TITLES.get(group, group)}\n\n| what | result |\n|---|---|\n"
        for what, results in rows.items():
            text += f"| {what} | {_together(results)} |\n"
    return text


def _result(case: ElementTree.Element, variant: str) -> str:
    """Return why a variant was not tested or that it fails; empty if it works."""
    skipped = case.find("skipped")
    if skipped is not None:
        return f"not tested ({skipped.get('message', '')})"
    failed = case.find("failure") is not None or case.find("error") is not None
    return f"{variant or 'it'} fails" if failed else ""


def _together(results: list[str]) -> str:
    n_tested = sum(not result.startswith("not tested") for result in results)
    reasons = Counter(result for result in results if result)
    if len(results) == 1:
        return next(iter(reasons), "works")
    text = f"works ({n_tested} variants)" if n_tested else ""
    exceptions = [f"{count} {reason}" for reason, count in sorted(reasons.items())]
    return "; ".join([text, *exceptions] if text else exceptions)


if __name__ == "__main__":
    main()
