"""A wall clock that is set back by an hour in the middle, for processes that do not know.

A library that is loaded into all of them takes an hour off every answer of the wall clock from the
moment on in which a file is there; the monotonic clock stays right, as it would.
"""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCE = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long back(void) {
    const char *path = getenv("FALSE_CLOCK");
    return path && access(path, F_OK) == 0 ? 3600 : 0;
}
int clock_gettime(clockid_t id, struct timespec *out) {
    int code = syscall(SYS_clock_gettime, id, out);
    if (code == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) out->tv_sec -= back();
    return code;
}
int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
"""


@dataclass(frozen=True)
class FalseClock:
    """For `Scenario`: its environment, and what sets it back."""

    library: Path
    switch: Path
    after: float

    @property
    def environment(self) -> dict[str, str]:
        """With which every process has the false clock."""
        return {"LD_PRELOAD": str(self.library), "FALSE_CLOCK": str(self.switch)}

    def meddle(self, seconds: float) -> None:
        """Set it back when it is time."""
        if seconds > self.after:
            self.switch.touch()


def clock_that_goes_back(folder: Path, after: float) -> FalseClock | None:
    """One that goes right for so many seconds; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return FalseClock(library, folder / "back", after)
