"""The command line ``f2a-tune``: arguments in, a printed result and an exit code out.

Exit codes: 0 done, 2 bad input (one line on standard error), 130 interrupted. Sub-commands import
what they need when they run, so that ``--help`` stays quick.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from f2a_tune import __version__
from f2a_tune.interrupts import kept_interrupts

DONE, BAD_INPUT, INTERRUPTED = 0, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; ``arguments`` defaults to those of the process."""
    options = _parser().parse_args(arguments)
    try:
        with kept_interrupts():
            options.run(options)
    except KeyboardInterrupt:
        print("f2a-tune: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if options.debug or not isinstance(error, _expected_errors()):
            raise
        print(f"f2a-tune: {' '.join(str(error).split())}", file=sys.stderr)
        return BAD_INPUT
    return DONE


def _expected_errors() -> tuple[type[Exception], ...]:
    """Whose message says all that a user needs; looked up when there is one, for it takes time."""
    from optuna.exceptions import OptunaError

    from f2a_tune.cutoff.launcher import WorkerStartError

    return ValueError, TypeError, ImportError, OSError, OptunaError, WorkerStartError


def script() -> NoReturn:
    """The installed command: like `main`, but it ends the process."""
    code = main()
    if code == INTERRUPTED:
        # Threads that are still simulating would hold up an ordinary exit.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _parser() -> argparse.ArgumentParser:
    from f2a_tune.cli import results, simulate, tune, worker

    parser = argparse.ArgumentParser(
        prog="f2a-tune", description="Tune models inside a wall-clock budget."
    )
    parser.add_argument("--version", action="version", version=f"f2a-tune {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    tune.add_command(commands)
    results.add_commands(commands)
    worker.add_command(commands)
    simulate.add_command(commands)
    return parser
