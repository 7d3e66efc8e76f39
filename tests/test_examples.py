"""Every example runs and prints what it promises."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres import program_folder

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[1] / "examples"
EXPECTED = {
    "an_svc_that_would_hang.py": ["ended after ", "fits were given up", "best: 0."],
    "resume_after_a_crash.py": ["ended with SIGKILL", "were known already", "best: 0.9"],
    "tune_from_the_command_line.py": ["best score: 0.9", "report: digits.html"],
    "two_workers_on_one_database.py": ["the helper ended with 0", "processes evaluated"],
    "a_training_loop_with_should_prune.py": ["best loss 0.0", "cutoff of the last trial"],
    "an_optuna_study_that_ends_on_time.py": ["ended after 1", "given up", "best: x="],
    "racing_folds_in_optuna.py": ["folds of", "over 5 folds"],
    "any_function_with_a_cutoff.py": ["C=1e+06: gave_up after 5.", "C=1e-09: finished"],
    "the_papers_figures.py": ["doubling   wait-ucb", "wrote paper.png"],
}


def test_all_examples_are_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_example(name, tmp_path, request):
    arguments = []
    if name == "two_workers_on_one_database.py" and program_folder() is not None:
        arguments = [request.getfixturevalue("postgres").new_database()]
    check(name, tmp_path, *arguments)


def check(name, folder, *arguments):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for words in EXPECTED[name]:
        assert words in done.stdout
