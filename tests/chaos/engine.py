"""Runs hostile searches, harms them from outside too, and looks at what is left.

A `Scenario` goes in; `play` starts a search in a process of its own, lets the harm happen, waits,
and returns a `Verdict`: how late it was, what was tried, and everything that was wrong.
"""

import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import optuna
import psutil

from f2a_tune.outcome import Kind
from f2a_tune.study.attributes import FOLD
from f2a_tune.study.fold_record import FoldRecord
from f2a_tune.study.storages import opened_storage
from tests.chaos.faults import FAULTS
from tests.chaos.player import N_FOLDS, RESULT

MARK = "F2A_TUNE_CHAOS"
ROOT = Path(__file__).parents[2]
# Starting a zygote takes seconds, a worker milliseconds.
WEIGHTS = {"kill worker": 10, "stop worker": 5, "kill zygote": 1}
HARMS = tuple(WEIGHTS)
# A machine may be busy; how late a search was is reported beside it.
LATEST_SECONDS = 5.0
HANGING_SECONDS = 60.0
LATER_SECONDS = 10.0
LOST = "storage lost at the end, then resumed"
TAIL_BYTES = 20_000


@dataclass(frozen=True)
class Scenario:
    """One search and what happens to it."""

    folder: Path
    budget: float = 8.0
    players: int = 2
    faults: tuple[str, ...] = tuple(FAULTS)
    harms: tuple[str, ...] = ()
    """What is done to its processes, at random moments."""
    harm_every: float = 0.5
    storage: str | None = None
    files: int = 0
    """Most open files of the parent, 0: as many as usual."""
    rows: int = 60
    seconds: float = 0.01
    environment: dict[str, str] = field(default_factory=dict)
    meddle: Callable[[float], None] | None = None
    """Called again and again with the seconds since the start."""
    mend: Callable[[], None] | None = None
    """Called when it has ended: what was taken away is there again."""
    kill_after: float | None = None
    """When all its processes are killed; it is then resumed."""
    seed: int = 0


@dataclass
class Verdict:
    """What came of it."""

    wrong: list[str] = field(default_factory=list)
    late_seconds: float = -math.inf
    faults: Counter[str] = field(default_factory=Counter)
    """Faults that fits did, and harm from outside, by name."""
    outcomes: Counter[str] = field(default_factory=Counter)
    result: dict[str, Any] = field(default_factory=dict)
    output: str = ""


def play(scenario: Scenario) -> Verdict:
    """Run it to its end, and look."""
    verdict = Verdict()
    mark = uuid.uuid4().hex
    scratch = scenario.folder / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    segments = set(os.listdir("/dev/shm"))
    resume = False
    if scenario.kill_after is not None:
        process = _start(scenario, mark, resume)
        Tail(process.stdout)
        _harm(scenario, process, verdict, stop_at=scenario.kill_after)
        kill_all(mark)
        process.wait()
        verdict.faults["kill all"] += 1
        resume = True
    _to_its_end(scenario, mark, resume, verdict)
    if scenario.mend is not None:
        scenario.mend()
    if verdict.result.get("storage lost"):
        # It had to end while nothing could be written, and has said so: whoever goes on later
        # finds what was written until then, and closes what was left open.
        verdict.outcomes[LOST] += 1
        later = replace(scenario, budget=scenario.budget + LATER_SECONDS, harms=(), meddle=None)
        _to_its_end(later, mark, True, verdict)
    _check_records(scenario, verdict)
    _check_leftovers(mark, scratch, segments, verdict)
    return verdict


def _to_its_end(scenario: Scenario, mark: str, resume: bool, verdict: Verdict) -> None:
    process = _start(scenario, mark, resume)
    tail = Tail(process.stdout)
    _harm(scenario, process, verdict, stop_at=HANGING_SECONDS + scenario.budget)
    if process.poll() is None:
        verdict.wrong.append("it did not end")
        kill_all(mark)
    process.wait()
    verdict.output = tail.text()
    _read_result(process.returncode, scenario, verdict)


def _start(scenario: Scenario, mark: str, resume: bool) -> subprocess.Popen[bytes]:
    settings = {
        "budget": scenario.budget,
        "players": scenario.players,
        "faults": list(scenario.faults),
        "storage": scenario.storage,
        "resume": resume,
        "files": scenario.files,
        "rows": scenario.rows,
        "seconds": scenario.seconds,
        "seed": scenario.seed,
        "log": str(scenario.folder / "log"),
        "told": str(scenario.folder / "told"),
    }
    environment = {
        **os.environ,
        "TMPDIR": str(scenario.folder / "scratch"),
        MARK: mark,
        **scenario.environment,
    }
    return subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.player", json.dumps(settings)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


class Tail(threading.Thread):
    """Reads what a search says, however much that is, and keeps the end."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        super().__init__(daemon=True)
        assert stream is not None
        self._stream, self._kept = stream, b""
        self.start()

    def run(self) -> None:
        with self._stream:
            while block := os.read(self._stream.fileno(), 1 << 20):
                self._kept = (self._kept + block.replace(b"\0", b""))[-TAIL_BYTES:]

    def text(self) -> str:
        """When all processes that could write have ended, or a little later."""
        self.join(5)
        return self._kept.decode(errors="replace")


def _harm(
    scenario: Scenario, process: subprocess.Popen[bytes], verdict: Verdict, stop_at: float
) -> None:
    """Until it ends, or for so long."""
    rng = random.Random(scenario.seed)
    begin = next_harm = time.monotonic()
    while process.poll() is None and (now := time.monotonic()) - begin < stop_at:
        if scenario.meddle is not None:
            scenario.meddle(now - begin)
        if scenario.harms and now > next_harm:
            next_harm = now + scenario.harm_every * 2 * rng.random()
            weights = [WEIGHTS[harm] for harm in scenario.harms]
            harm = rng.choices(scenario.harms, weights)[0]
            if _do(harm, process.pid, rng):
                verdict.faults[harm] += 1
        time.sleep(0.02)


def _do(harm: str, parent: int, rng: random.Random) -> bool:
    try:
        zygotes = [
            one
            for one in psutil.Process(parent).children()
            if any("zygote" in word for word in one.cmdline())
        ]
        workers = [worker for zygote in zygotes for worker in zygote.children()]
        targets = zygotes if workers and harm == "kill zygote" else workers
        if not targets:
            return False
        rng.choice(targets).send_signal(
            signal.SIGSTOP if harm == "stop worker" else signal.SIGKILL
        )
    except psutil.Error:  # it has just ended
        return False
    return True


def marked(mark: str) -> list[psutil.Process]:
    """All processes that descend from one start, whoever their parents are now."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != "zombie":
                found.append(process)
        except psutil.Error:
            continue
    return found


def kill_all(mark: str) -> None:
    """Also those that are born meanwhile."""
    while found := marked(mark):
        for one in found:
            with suppress(psutil.Error):
                one.kill()


def _read_result(code: int, scenario: Scenario, verdict: Verdict) -> None:
    if code != 0:
        verdict.wrong.append(f"exit code {code}: {verdict.output[-2000:]}")
        return
    said = [line for line in verdict.output.splitlines() if line.startswith(RESULT)]
    if len(said) != 1:
        verdict.wrong.append(f"no result: {verdict.output[-2000:]}")
        return
    verdict.result = json.loads(said[0].removeprefix(RESULT))
    late = verdict.result["seconds"] - scenario.budget
    verdict.late_seconds = max(verdict.late_seconds, late)
    if late > LATEST_SECONDS:
        where = verdict.output.rpartition(RESULT)[0][-4000:]
        verdict.wrong.append(f"{late:.1f} s late: {where}")
    # It has said so; with most fits hanging, and killed in between, there may be none.
    verdict.outcomes["winners with all folds"] += verdict.result["status"] == "complete"


def _check_records(scenario: Scenario, verdict: Verdict) -> None:
    """What fits have written, what the search was told, and what the study has."""
    log, told = scenario.folder / "log", scenario.folder / "told"
    ended = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    fits = Counter((float(quality), fold) for quality, fold in ended)
    heard: Counter[tuple[float, int]] = Counter()
    for line in told.read_text().splitlines() if told.exists() else []:
        kind, fault, quality, fold = json.loads(line)
        verdict.faults[fault] += 1
        verdict.outcomes[kind] += 1
        if kind == Kind.FINISHED.value:
            heard[quality, fold] += 1
    if any(count > 1 for count in heard.values()):
        verdict.wrong.append("a fold has finished twice")
    # One may have ended in the moment in which it was killed.
    if sum(heard.values()) > sum(fits.values()):
        verdict.wrong.append("more was told than has finished")
    if scenario.storage is not None:
        _check_study(scenario.storage, heard, verdict)


def _check_study(url: str, heard: Counter[tuple[float, int]], verdict: Verdict) -> None:
    study = optuna.load_study(storage=opened_storage(url), study_name="chaos")
    # A closed trial that is gone on with later is copied to a new one: that is no second fold.
    stored: dict[tuple[float, int], set[str]] = defaultdict(set)
    means = {}
    for trial in study.trials:
        if trial.state.name == "RUNNING":
            verdict.wrong.append(f"trial {trial.number} was left open")
        quality = trial.params.get("quality")
        scores = []
        for fold in range(N_FOLDS):
            content = trial.user_attrs.get(f"{FOLD}{fold}")
            pull = FoldRecord.from_attribute(content)
            if pull is not None and pull.kind is Kind.FINISHED:
                stored[quality, fold].add(json.dumps(content, sort_keys=True))
                scores.append(trial.intermediate_values.get(fold, math.nan))
        if len(scores) == N_FOLDS:
            means[quality] = sum(scores) / N_FOLDS
    missing = heard.keys() - stored.keys()
    if missing and not verdict.outcomes[LOST]:
        verdict.wrong.append(f"{len(missing)} finished folds are not in the study")
    if any(len(contents) > 1 for contents in stored.values()):
        verdict.wrong.append("a fold is in the study twice")
    if any(math.isnan(mean) for mean in means.values()):
        verdict.wrong.append("an intermediate value is missing")
    if verdict.result and means:
        best = max(means, key=means.__getitem__)
        if best != verdict.result["quality"] or abs(means[best] - verdict.result["score"]) > 1e-9:
            verdict.wrong.append("the result cannot be computed from the study")


def _check_leftovers(mark: str, scratch: Path, segments: set[str], verdict: Verdict) -> None:
    give_up_at = time.monotonic() + 5
    while (left := marked(mark)) and time.monotonic() < give_up_at:
        time.sleep(0.05)
    if left:
        verdict.wrong.append(f"processes are left: {left}")
        kill_all(mark)
    # What was killed as a whole leaves its folder behind, and the next start takes it away.
    if files := sorted(str(path.relative_to(scratch)) for path in scratch.rglob("*")):
        verdict.wrong.append(f"files are left: {files[:5]}")
    ours = {name for name in set(os.listdir("/dev/shm")) - segments if "f2a" in name}
    if ours:
        verdict.wrong.append(f"shared memory is left: {sorted(ours)}")
