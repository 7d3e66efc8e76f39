"""Everything that knows Optuna's storage and the ``f2a:`` attributes."""
