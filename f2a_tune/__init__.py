"""f2a_tune: find good configurations inside a wall-clock budget, and learn when to give up."""

from __future__ import annotations

__version__ = "0.1.0.dev0"
