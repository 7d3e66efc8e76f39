"""``f2a-tune tune``: a table in; the best model, a report and the winner's parameters out."""

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

Estimators: linear (logistic, ridge), svm (svc, svr), knn, random_forest, extra_trees,
gradient_boosting, hist_gradient_boosting, mlp; several separated by commas; auto is all of them;
module:factory is your own, with --space. A space is a TOML file:

  [model__C]
  low = 0.001
  high = 1000.0
  log = true

Exit codes: 0 done, 2 bad input, 130 interrupted before anything finished."""


def add_command(commands: Any) -> None:
    """Add ``tune`` to the parser."""
    parser = commands.add_parser(
        "tune",
        help="tune a model on a table, inside a time budget",
        description="Tune a model on a table (CSV, Parquet, or a dataset of scikit-learn).",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", metavar="DATA", help="file, or digits, iris, wine, …")
    parser.add_argument("--target", help="column to predict: its name, or its number (-1: last)")
    parser.add_argument("--estimator", default="auto", help="what to tune (default auto)")
    parser.add_argument("--space", help="TOML file with the search space")
    parser.add_argument("--budget", default="60s", help="90, 90s, 5m, 1h30m (default 60s)")
    parser.add_argument("--metric", help="scikit-learn's name of a score (default accuracy, r2)")
    parser.add_argument("--task", default="auto", help="classification or regression")
    parser.add_argument("--header", default="auto", help="yes, no or auto: names in line one")
    parser.add_argument("--cv", default="5", help="folds (default 5)")
    parser.add_argument(
        "--repeats", default="auto", help="times the folds are drawn (auto: more if rows are few)"
    )
    parser.add_argument(
        "--holdout", default="0", help="share of rows kept back to test the winner"
    )
    parser.add_argument("--jobs", default="1", help="fits at a time (default 1; -1: all cores)")
    parser.add_argument("--seed", default="0", help="whole number (default 0)")
    parser.add_argument("--storage", help="where to keep the search: URL or FILE.journal")
    parser.add_argument("--study-name", help="its name there")
    parser.add_argument("--resume", action="store_true", help="go on with that search")
    parser.add_argument("--report", help="write an HTML page about it here")
    parser.add_argument("--save", help="write the fitted model here (joblib)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Tune and say what was found."""
    from f2a_tune.cli.job import JOB
    from f2a_tune.cli.values import jobs
    from f2a_tune.optuna_plugin.storages import opened_storage

    job = _job(options)
    n_jobs = jobs("--jobs", options.jobs)
    _check_files(options)
    if (options.storage is None) != (options.study_name is None):
        raise ValueError("--storage and --study-name go together: give both, or none.")
    if options.resume and options.storage is None:
        raise ValueError("--resume needs --storage and --study-name: what is to be resumed?")
    table = job.table()
    X, X_kept, y, y_kept = job.split(table)
    search = job.search(table).set_params(
        n_jobs=n_jobs,
        study_name=options.study_name or Path(options.data).stem,
        storage=None if options.storage is None else opened_storage(options.storage, "--storage "),
        resume=options.resume,
        verbose=0 if options.quiet or options.json else 1,
    )
    search.study_attributes = {JOB: job.to_attribute()}  # workers find it there
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of models; those of the search are said below
        warnings.showwarning = _say
        for kind in _ours():
            warnings.simplefilter("always", kind)
        search.fit(X, y)
    kept = None if X_kept is None else float(search.score(X_kept, y_kept))
    _finish(options, job, search, kept)


def _ours() -> tuple[type[Warning], ...]:
    from f2a_tune.sklearn_plugin import (
        PartialValidationWarning,
        SearchInterruptedWarning,
        StorageLostWarning,
    )

    return PartialValidationWarning, SearchInterruptedWarning, StorageLostWarning


def _say(message: Any, *more: Any, **options: Any) -> None:
    del more, options
    above = "\n" if sys.stdout.isatty() else ""  # the bar stands in the line
    print(f"{above}f2a-tune: {' '.join(str(message).split())}", file=sys.stderr)


def _job(options: argparse.Namespace) -> Any:
    from f2a_tune.cli.job import Job
    from f2a_tune.cli.values import seconds, share, whole_number

    space = None
    if options.space is not None:
        path = Path(options.space)
        if not path.is_file():
            raise ValueError(f"--space {options.space!r} is not there.")
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
    """Before hours of work: can the results be written?"""
    from f2a_tune.cli.values import check_writable

    check_writable("--report", options.report)
    check_writable("--save", options.save)
    if options.report is not None and importlib.util.find_spec("plotly") is None:
        raise ImportError('--report needs plotly: pip install "f2a_tune[plot]".')


def _finish(options: argparse.Namespace, job: Any, search: Any, kept: float | None) -> None:
    """Save first what cannot be had again, then say what was found."""
    from f2a_tune.reading import read_study
    from f2a_tune.sklearn_plugin.patience import STORAGE_TROUBLE

    if options.save is not None:
        import joblib

        joblib.dump(search.best_estimator_, options.save)
    try:
        reading = read_study(search.study_)
    except STORAGE_TROUBLE as error:  # what is in memory is not lost with it
        reading = None
        _say(f"the storage cannot be read ({error}): no table and no report.")
    if options.json:
        print(json.dumps(_result(search, kept)))
    else:
        _print_result(job, search, reading, kept)
    if options.report is not None and reading is not None:
        _write_report(options, job, reading, kept)
    if not options.json:
        for what, path in (("report", options.report), ("model", options.save)):
            if path is not None and (what == "model" or reading is not None):
                print(f"{what}: {path}")


def _print_result(job: Any, search: Any, reading: Any, kept: float | None) -> None:
    from f2a_tune.report.text import parameters, summary_sentence, table_of_configurations

    if reading is not None:
        print(table_of_configurations(reading))
        print()
        print(summary_sentence(reading))
    print(f"best score: {search.best_score_:.4f} with {parameters(search.best_params_)}")
    if kept is not None:
        print(f"score on {job.holdout:.0%} of the rows, kept back: {kept:.4f}")
    print(f"budget: {search.budget_}")


def _write_report(options: argparse.Namespace, job: Any, reading: Any, kept: float | None) -> None:
    from f2a_tune.optuna_plugin.storages import without_passwords
    from f2a_tune.report import write_report

    command = without_passwords(" ".join(["f2a-tune", *sys.argv[1:]]))
    facts = {"command": command, "seed": str(job.seed), "data": job.data}
    if kept is not None:
        facts["score on rows kept back"] = f"{kept:.4f}"
    write_report(reading, options.report, facts=facts)


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
