"""``f2a-tune worker``: a storage and a study's name in, one more process that plays its search."""

from __future__ import annotations

import argparse
import json
import signal
from pathlib import Path
from types import FrameType
from typing import Any

EXAMPLE = """example:
  f2a-tune worker --storage postgresql+psycopg://me@host/db --study-name night \\
      --search my_project.searches:make

The search is what the study was begun with: a function in an importable module, or a file made by
joblib.dump, either of (F2ASearchCV, X, y). A study begun by f2a-tune tune knows it itself; if that
was given --estimator module:factory, which is code, give the same here. A file is a pickle: give
only one that you trust. SIGTERM and Ctrl-C leave the search cleanly."""


def add_command(commands: Any) -> None:
    """Add ``worker`` to the parser."""
    parser = commands.add_parser(
        "worker",
        help="join a running search from another process or machine",
        description="Join a running search, until its budget ends.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--storage", required=True, help="URL of the study's storage")
    parser.add_argument("--study-name", required=True, help="name of the study")
    parser.add_argument("--search", help="module:function or file.joblib, of (search, X, y)")
    parser.add_argument(
        "--estimator", help="module:factory, if the search was begun with this one by tune"
    )
    parser.add_argument("--jobs", default="1", help="fits at a time (default 1)")
    parser.add_argument("--json", action="store_true", help="print the account as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Join, play, and say where the seconds went."""
    from f2a_tune.cli.values import jobs
    from f2a_tune.optuna_plugin.storages import opened_storage

    n_jobs = jobs("--jobs", options.jobs)
    storage = opened_storage(options.storage, "--storage ")
    search, X, y = _search(options, storage)
    search.set_params(storage=storage, study_name=options.study_name, n_jobs=n_jobs)
    previous = signal.signal(signal.SIGTERM, _leave)
    try:
        use = search.join(X, y)
    finally:
        signal.signal(signal.SIGTERM, previous)
    if options.json:
        print(json.dumps({**use.to_attribute(), "total_seconds": use.total_seconds}))
    else:
        print(use)


def _leave(number: int, frame: FrameType | None) -> None:
    """As Ctrl-C: the search closes what it has open, and returns."""
    del number, frame
    raise KeyboardInterrupt


def _search(options: argparse.Namespace, storage: Any) -> tuple[Any, Any, Any]:
    if options.search is None:
        from f2a_tune.cli.job import stored_job

        job = stored_job(storage, options.study_name)
        # A storage may say which data and which of our models, but not which code to run.
        is_code = ":" in job.estimator
        if options.estimator != (job.estimator if is_code else None):
            if not is_code:
                raise ValueError(
                    f"--estimator {options.estimator!r}: study {options.study_name!r} was begun "
                    f"with {job.estimator!r}, which needs no word of yours."
                )
            raise ValueError(
                f"study {options.study_name!r} was begun with --estimator {job.estimator!r}, "
                "which is code: if you trust it, give the same here."
            )
        return job.search_and_data()
    if options.estimator is not None:
        raise ValueError("--estimator and --search do not go together: --search says it all.")
    if options.search.endswith(".joblib"):
        import joblib

        if not Path(options.search).is_file():
            raise ValueError(f"--search {options.search!r} is not there.")
        return _checked(joblib.load(options.search), options.search)
    from f2a_tune.cli.values import imported

    return _checked(imported("--search", options.search)(), options.search)


def _checked(found: Any, given: str) -> tuple[Any, Any, Any]:
    if not isinstance(found, tuple) or len(found) != 3 or not hasattr(found[0], "join"):
        raise ValueError(
            f"--search {given!r} must give (F2ASearchCV, X, y), got {type(found).__name__}."
        )
    return found
