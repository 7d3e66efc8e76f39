"""The documentation is built without a warning."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[1] / "docs"


def test_sphinx_builds_it(tmp_path):
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-W",
            "-q",
            "-b",
            "html",
            str(DOCS),
            str(tmp_path / "out"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "api.html").stat().st_size > 10_000
