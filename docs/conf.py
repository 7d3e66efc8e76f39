"""Documentation: Markdown pages and docstrings in, HTML out (``sphinx-build -W docs OUT``)."""

from f2a_tune import __version__

project = "f2a_tune"
author = "The f2a_tune authors"
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
exclude_patterns = ["optunahub", "_build"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing", "config.cache"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
default_role = "code"
