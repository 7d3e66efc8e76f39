"""The command ``f2a-tune tune``, which tunes a model on a table and reports the best one."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import warnings
from pathlib import Path
from typing import Any

EXAMPLE = """examples:
  f2a-tune tune digits --estimator auto --budget 30s --report digits.html
  f2a-tune tune sales.csv --target price --estimator hist_gradient_boosting,linear \\
      --budget 1h30m --jobs 4 --storage sqlite:///sales.db --study-name sales --save model.joblib

Estimators: linear (or logistic, ridge), svm (or svc, svr), knn, random_forest, extra_trees,
gradient_boosting, hist_gradient_boosting, mlp. Separate several with commas; auto means all.
Use module:factory for your own estimator, together with --space. A space is a TOML file:

  [model__C]
  low = 0.001
  high = 1000.0
  log = true

Exit codes: 0 success, 2 invalid input, 130 interrupted before any fit finished."""


# A name rather than an import, so that workers can start before this process imports anything.
PRELOAD = ("f2a_tune.cli.worker_imports",)
# Imports and reading the table count towards the budget, up to this share of it.
LARGEST_START_SHARE = 0.5


def add_command(commands: Any) -> None:
    """Add ``tune`` to the parser."""
    parser = commands.add_parser(
        "tune",
        help="tune a model on a table, inside a time budget",
        description="Tune a model on a table (CSV, Parquet, or a dataset of scikit-learn).",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", metavar="DATA", help="file, or a dataset: digits, iris, wine, …")
    parser.add_argument("--target", help="column to predict: name or zero-based number (-1: last)")
    parser.add_argument("--estimator", default="auto", help="estimators to tune (default auto)")
    parser.add_argument("--space", help="TOML file with the search space")
    parser.add_argument(
        "--budget", default="60s", help="time budget such as 90, 90s, 5m or 1h30m (default 60s)"
    )
    parser.add_argument("--metric", help="scikit-learn scoring name (default accuracy or r2)")
    parser.add_argument("--task", default="auto", help="classification, regression or auto")
    parser.add_argument("--header", default="auto", help="names in the first line: yes, no, auto")
    parser.add_argument("--cv", default="5", help="number of folds (default 5)")
    parser.add_argument(
        "--repeats", default="auto", help="times that folds are drawn (auto: more for few rows)"
    )
    parser.add_argument(
        "--holdout", default="0", help="fraction of rows held out to test the winner (default 0)"
    )
    parser.add_argument("--jobs", default="1", help="parallel fits (default 1; -1: all cores)")
    parser.add_argument("--seed", default="0", help="random seed, a whole number (default 0)")
    parser.add_argument("--storage", help="storage of the search: URL or FILE.journal")
    parser.add_argument("--study-name", help="name of the study in the storage")
    parser.add_argument("--resume", action="store_true", help="continue the stored search")
    parser.add_argument("--report", help="write an HTML report to this file")
    parser.add_argument("--save", help="save the fitted model to this file (joblib)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="do not show progress")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Tune a model, then print and save the result."""
    from f2a_tune.cli.job import JOB
    from f2a_tune.cli.values import jobs
    from f2a_tune.study.storages import existing_storage, opened_storage

    job = _job(options)
    n_jobs = jobs("--jobs", options.jobs)
    _prestart(n_jobs)
    _check_files(options)
    if (options.storage is None) != (options.study_name is None):
        raise ValueError("--storage and --study-name must be passed together.")
    if options.resume and options.storage is None:
        raise ValueError("--resume requires --storage and --study-name.")
    table = job.table()
    X, X_kept, y, y_kept = job.split(table)
    opened = existing_storage if options.resume else opened_storage
    search = job.search(table).set_params(
        n_jobs=n_jobs,
        study_name=options.study_name or Path(options.data).stem,
        storage=None if options.storage is None else opened(options.storage, "--storage "),
        resume=options.resume,
        verbose=0 if options.quiet or options.json else 1,
    )
    search.study_attributes = {JOB: job.to_attribute()}  # read by f2a-tune worker
    search.started, search.worker_preload = _start_of_budget(options, job.seconds), PRELOAD
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from models; those of the search are shown
        warnings.showwarning = _say
        for kind in _ours():
            warnings.simplefilter("always", kind)
        search.fit(X, y)
    kept = None if X_kept is None else float(search.score(X_kept, y_kept))
    _finish(options, job, search, kept)


def _start_of_budget(options: argparse.Namespace, budget_seconds: float) -> float:
    """Return when the budget starts: with the command, or later to leave half of it to the search.

    The first start after an installation can take half a minute, because files are read from a
    cold disk. A late result is better than none.
    """
    from f2a_tune.clock import monotonic_seconds

    now = monotonic_seconds()
    started: float = max(options.started, now - LARGEST_START_SHARE * budget_seconds)
    if started > options.started and not options.json:
        spent = now - options.started
        _say(f"startup took {spent:.0f} s, so the command will overrun its budget.")
    return started


def _prestart(n_jobs: int) -> None:
    """Start workers early, so that they import modules while this process does."""
    from joblib import effective_n_jobs

    from f2a_tune.cutoff.warm_pools import prestart_pool

    prestart_pool(effective_n_jobs(n_jobs), PRELOAD)


def _ours() -> tuple[type[Warning], ...]:
    from f2a_tune.sklearn_plugin import (
        PartialValidationWarning,
        RefitWarning,
        SearchInterruptedWarning,
        StorageLostWarning,
    )

    return PartialValidationWarning, RefitWarning, SearchInterruptedWarning, StorageLostWarning


def _say(message: Any, *more: Any, **options: Any) -> None:
    del more, options
    above = "\n" if sys.stdout.isatty() else ""  # the progress bar is on the current line
    print(f"{above}f2a-tune: {' '.join(str(message).split())}", file=sys.stderr)


def _job(options: argparse.Namespace) -> Any:
    from f2a_tune.cli.job import Job
    from f2a_tune.cli.values import seconds, share, whole_number

    space = None
    if options.space is not None:
        path = Path(options.space)
        if not path.is_file():
            raise ValueError(f"--space {options.space!r} is not a file. Pass a TOML file.")
        space = path.read_text(encoding="utf-8")
    return Job(
        data=options.data,
        target=options.target,
        estimator=options.estimator,
        space=space,
        metric=options.metric,
        n_folds=whole_number("--cv", options.cv, least=2),
        seed=whole_number("--seed", options.seed, least=0),
        seconds=seconds("--budget", options.budget),
        header=options.header,
        task=options.task,
        holdout=share("--holdout", options.holdout),
        n_repeats=None
        if options.repeats == "auto"
        else whole_number("--repeats", options.repeats),
    )


def _check_files(options: argparse.Namespace) -> None:
    """Check before hours of work that the results can be written."""
    from f2a_tune.cli.values import check_writable

    check_writable("--report", options.report)
    check_writable("--save", options.save)
    if options.report is not None and importlib.util.find_spec("plotly") is None:
        raise ImportError('--report requires plotly: pip install "f2a_tune[plot]".')


def _finish(options: argparse.Namespace, job: Any, search: Any, kept: float | None) -> None:
    """Save the model first, because it cannot be recovered, then print and report the result."""
    from f2a_tune.study.reader import read_study
    from f2a_tune.study.storage_retry import STORAGE_ERRORS

    if options.save is not None:
        import joblib

        joblib.dump(search.best_estimator_, options.save)
    try:
        view = read_study(search.study_)
    except STORAGE_ERRORS as error:  # the result is still in memory
        view = None
        _say(f"the storage cannot be read ({error}), so there is no table and no report.")
    if options.json:
        print(json.dumps(_result(search, kept)))
    else:
        _print_result(job, search, view, kept)
    if options.report is not None and view is not None:
        if not (options.quiet or options.json):
            print("writing the report (not part of the budget) …", flush=True)
        _write_report(options, job, view, kept)
    if not options.json:
        for what, path in (("report", options.report), ("model", options.save)):
            if path is not None and (what == "model" or view is not None):
                print(f"{what}: {path}")


def _print_result(job: Any, search: Any, view: Any, kept: float | None) -> None:
    from f2a_tune.report.text import parameters, summary_sentence, table_of_configurations

    if view is not None:
        print(table_of_configurations(view))
        print()
        print(summary_sentence(view))
    print(f"best score: {search.best_score_:.4f} with {parameters(search.best_params_)}")
    if kept is not None:
        print(f"score on the {job.holdout:.0%} of rows held out: {kept:.4f}")
    print(f"worker-seconds: {search.budget_}")


def _write_report(options: argparse.Namespace, job: Any, view: Any, kept: float | None) -> None:
    from f2a_tune.report import write_report
    from f2a_tune.study.storages import without_passwords

    command = without_passwords(" ".join(["f2a-tune", *sys.argv[1:]]))
    facts = {"command": command, "seed": str(job.seed), "data": job.data}
    if kept is not None:
        facts["score on held-out rows"] = f"{kept:.4f}"
    write_report(view, options.report, facts=facts)


def _result(search: Any, kept: float | None) -> dict[str, Any]:
    status = search.cv_results_["status"]
    return {
        "best_score": float(search.best_score_),
        "best_params": {name: _plain(value) for name, value in search.best_params_.items()},
        "fully_validated": bool(status[search.best_index_] == "complete"),
        "holdout_score": kept,
        "n_configurations": len(status),
        "budget": {**search.budget_.to_attribute(), "total": search.budget_.total_seconds},
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)
