"""``f2a-tune tune``: a table in; the best model, a report and the winner's parameters out."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import warnings
from contextlib import suppress
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
    from f2a_tune.cli.values import whole_number
    from f2a_tune.optuna_plugin.storages import opened_storage

    job = _job(options)
    n_jobs = whole_number("--jobs", options.jobs)
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
    if options.storage is not None:
        search.set_params(callbacks=[_Noting(job, search)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of models; those of the search are said below
        warnings.showwarning = _say
        for kind in _ours():
            warnings.simplefilter("always", kind)
        search.fit(X, y)
    kept = None if X_kept is None else float(search.score(X_kept, y_kept))
    _finish(options, job, search, kept)


class _Noting:
    """Writes the job to the study with the first pull, so that workers find it."""

    def __init__(self, job: Any, search: Any) -> None:
        self._job, self._search, self._done = job, search, False

    def __call__(self, event: object) -> bool:
        from f2a_tune.cli.job import JOB

        del event
        if not self._done:
            with suppress(Exception):  # the storage may be back for the next pull
                self._search.study_.set_user_attr(JOB, self._job.to_attribute())
                self._done = True
        return False


def _ours() -> tuple[type[Warning], ...]:
    from f2a_tune.sklearn_plugin import PartialValidationWarning, SearchInterruptedWarning

    return PartialValidationWarning, SearchInterruptedWarning


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
    )


def _check_files(options: argparse.Namespace) -> None:
    """Before hours of work: can the results be written?"""
    from f2a_tune.cli.values import check_writable

    check_writable("--report", options.report)
    check_writable("--save", options.save)
    if options.report is not None and importlib.util.find_spec("plotly") is None:
        raise ImportError('--report needs plotly: pip install "f2a_tune[plot]".')


def _finish(options: argparse.Namespace, job: Any, search: Any, kept: float | None) -> None:
    from f2a_tune.reading import read_study
    from f2a_tune.report.text import parameters, summary_sentence, table_of_configurations

    reading = read_study(search.study_)
    if options.json:
        print(json.dumps(_result(search, reading, kept)))
        _write_files(options, job, search, reading, kept)
        return
    print(table_of_configurations(reading))
    print()
    print(summary_sentence(reading))
    print(f"best score: {search.best_score_:.4f} with {parameters(_params(reading))}")
    if kept is not None:
        print(f"score on {job.holdout:.0%} of the rows, kept back: {kept:.4f}")
    print(f"budget: {search.budget_}")
    _write_files(options, job, search, reading, kept)
    for what in ("report", "save"):
        if getattr(options, what) is not None:
            print(f"{'report' if what == 'report' else 'model'}: {getattr(options, what)}")


def _write_files(
    options: argparse.Namespace, job: Any, search: Any, reading: Any, kept: float | None
) -> None:
    """The model and the report; what was found has been printed by now."""
    if options.save is not None:
        import joblib

        joblib.dump(search.best_estimator_, options.save)
    if options.report is not None:
        from f2a_tune.optuna_plugin.storages import without_passwords
        from f2a_tune.report import write_report

        command = without_passwords(" ".join(["f2a-tune", *sys.argv[1:]]))
        facts = {"command": command, "seed": str(job.seed), "data": job.data}
        if kept is not None:
            facts["score on rows kept back"] = f"{kept:.4f}"
        write_report(reading, options.report, facts=facts)


def _result(search: Any, reading: Any, kept: float | None) -> dict[str, Any]:
    return {
        "best_score": float(search.best_score_),
        "best_params": {name: _plain(value) for name, value in _params(reading).items()},
        "fully_validated": reading.fully_validated,
        "holdout_score": kept,
        "n_configurations": len(reading.configurations),
        "budget": {**search.budget_.to_attribute(), "total": search.budget_.total_seconds},
    }


def _params(reading: Any) -> dict[str, Any]:
    """The winner's; none if all scores were no numbers."""
    return {} if reading.winner is None else reading.winner.params


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)
