"""Property tests. They try the same examples every time, unless `benchmarks/fuzz.py` runs them."""

import os


def examples(fixed):
    """How many examples a test tries: a multiple of the fixed number when exploring."""
    return round(fixed * float(os.environ.get("F2A_TUNE_EXPLORE", "1")))
