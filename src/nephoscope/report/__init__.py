"""The report of one run: a page, a text for pasting, the JSON document, and the terminal.

All four say the same: sections (report/sections) are built once from the result, in blocks
(report/blocks.py), and rendered by as_html.py, as_markdown.py and as_terminal.py.
"""

from __future__ import annotations

from nephoscope.report.writing import ReportPaths, terminal, write

__all__ = ["ReportPaths", "terminal", "write"]
