"""Assembles what every capability contributes: the result of a run, its findings and its report.

The table of capabilities is in table.py. The functions below are loaded when they are first used,
because the command line reads the table at every start.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nephoscope.capabilities.analyse_run import build, run_data
    from nephoscope.capabilities.report_files import document, result_schema, terminal, write

__all__ = ["build", "document", "result_schema", "run_data", "terminal", "write"]

_MODULES = ("analyse_run", "report_files")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    modules = (import_module(f"{__name__}.{module}") for module in _MODULES)
    return next(getattr(module, name) for module in modules if hasattr(module, name))
