"""Reports about a study as text, as a table or as a single HTML file."""

from __future__ import annotations

from f2a_tune.report.page import html_report, write_report
from f2a_tune.report.text import summary_sentence, table_of_configurations

__all__ = ["html_report", "summary_sentence", "table_of_configurations", "write_report"]
