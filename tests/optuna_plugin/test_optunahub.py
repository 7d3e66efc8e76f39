"""The folder for OptunaHub, as far as its registry's rules can be checked here."""

import re
import subprocess
import sys
from pathlib import Path

import optuna
import pytest

optunahub = pytest.importorskip("optunahub")

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2] / "docs" / "optunahub" / "package"
PACKAGE = ROOT / "samplers" / "wait_ucb"


def test_it_loads_and_samples():
    module = optunahub.load_local_module("samplers/wait_ucb", registry_root=str(ROOT))
    study = optuna.create_study(
        sampler=module.WaitUCBSampler(seed=0), pruner=module.WaitUCBPruner()
    )
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=5)
    assert len(study.trials) == 5


def test_the_example_runs():
    code = (PACKAGE / "example.py").read_text()
    local = f'load_local_module(package="samplers/wait_ucb", registry_root={str(ROOT)!r})'
    code = code.replace('load_module(package="samplers/wait_ucb")', local)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert re.search(r"\{'x': [01]\.\d+\}", done.stdout)


def test_files_and_front_matter():
    assert {path.name for path in PACKAGE.iterdir() if path.is_file()} == {
        "LICENSE", "README.md", "__init__.py", "example.py", "requirements.txt"
    }  # fmt: skip
    assert (PACKAGE / "LICENSE").read_text().startswith("MIT License")
    text = (PACKAGE / "README.md").read_text()
    matter = dict(re.findall(r"^(\w+): (.+)$", text.split("---")[1], re.MULTILINE))
    assert set(matter) == {
        "author", "title", "description", "tags", "optuna_versions", "license"
    }  # fmt: skip
    assert matter["license"] == "MIT License"
    assert "sampler" in matter["tags"]
    sections = re.findall(r"^## (\w+)$", text, re.MULTILINE)
    assert sections == ["Abstract", "APIs", "Installation", "Example", "Others"]
    assert not re.search(r"<\w+[ >/]", text), "no HTML"


@pytest.mark.parametrize("name", ["__init__.py", "example.py"])
def test_one_import_a_line(name):
    for line in (PACKAGE / name).read_text().splitlines():
        assert len(line) <= 99
        if line.startswith(("import", "from")):
            assert "," not in line
