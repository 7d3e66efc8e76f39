"""The command ``f2a-tune worker``, which joins a running search from another process."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

EXAMPLE = """example:
  f2a-tune worker --storage postgresql+psycopg://me@host/db --study-name night \\
      --search my_project.searches:make

--search must be the search that created the study: a function in an importable module, or a file
written by joblib.dump, that provides (F2ASearchCV, X, y). It is not needed for a study created by
f2a-tune tune. If that command was given --estimator module:factory, which is code, pass the same
here. A joblib file is a pickle: load only files that you trust. SIGTERM and Ctrl-C leave the
search cleanly."""


def add_command(commands: Any) -> None:
    """Add ``worker`` to the parser."""
    parser = commands.add_parser(
        "worker",
        help="join a running search from another process or machine",
        description="Join a running search until its budget ends.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--storage", required=True, help="URL of the study's storage")
    parser.add_argument("--study-name", required=True, help="name of the study")
    parser.add_argument("--search", help="module:function or FILE.joblib of (search, X, y)")
    parser.add_argument(
        "--estimator", help="module:factory, if tune was called with this estimator"
    )
    parser.add_argument("--jobs", default="1", help="parallel fits (default 1; -1: all cores)")
    parser.add_argument("--json", action="store_true", help="print the budget summary as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Join the search, and print how the time was spent."""
    from f2a_tune.cli.values import jobs
    from f2a_tune.study.storages import existing_storage

    n_jobs = jobs("--jobs", options.jobs)
    storage = existing_storage(options.storage, "--storage ")
    search, X, y = _search(options, storage)
    search.set_params(storage=storage, study_name=options.study_name, n_jobs=n_jobs)
    previous = signal.signal(signal.SIGTERM, _leave)
    try:
        use = search.join(X, y)
    except KeyboardInterrupt:
        # It arrived outside the run itself, for example while the search was being prepared.
        if options.debug:
            traceback.print_exc()
        print("interrupted while no fit was running", file=sys.stderr)
        return
    finally:
        signal.signal(signal.SIGTERM, previous)
    if options.json:
        print(json.dumps({**use.to_attribute(), "total_seconds": use.total_seconds}))
    else:
        print(use)


def _leave(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM like Ctrl-C: the search closes its open trials and returns."""
    del number, frame
    raise KeyboardInterrupt


def _search(options: argparse.Namespace, storage: Any) -> tuple[Any, Any, Any]:
    if options.search is None:
        from f2a_tune.cli.job import stored_job

        job = stored_job(storage, options.study_name)
        # A storage may choose the data and a built-in model, but not the code to run.
        is_code = ":" in job.estimator
        if options.estimator != (job.estimator if is_code else None):
            if not is_code:
                raise ValueError(
                    f"--estimator {options.estimator!r} must be omitted, because study "
                    f"{options.study_name!r} was created with {job.estimator!r}."
                )
            raise ValueError(
                f"study {options.study_name!r} was created with --estimator {job.estimator!r}, "
                "which is code. If you trust it, pass the same --estimator."
            )
        return job.search_and_data()
    if options.estimator is not None:
        raise ValueError("--estimator and --search cannot be combined. Omit --estimator.")
    if options.search.endswith(".joblib"):
        import joblib

        if not Path(options.search).is_file():
            raise ValueError(f"--search {options.search!r} is not a file. Pass an existing file.")
        return _checked(joblib.load(options.search), options.search)
    from f2a_tune.cli.values import imported

    return _checked(imported("--search", options.search)(), options.search)


def _checked(found: Any, given: str) -> tuple[Any, Any, Any]:
    if not isinstance(found, tuple) or len(found) != 3 or not hasattr(found[0], "join"):
        raise ValueError(
            f"--search {given!r} must provide (F2ASearchCV, X, y), got {type(found).__name__}."
        )
    return found
