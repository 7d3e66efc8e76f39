"""``python -m f2a_tune`` is ``f2a-tune``."""

from __future__ import annotations

from f2a_tune.cli import script

script()
