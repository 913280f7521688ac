"""Assembles what every capability contributes: the result of a run, its findings and its report."""

from nephoscope.capabilities.build import build
from nephoscope.capabilities.census_schema import census_schema
from nephoscope.capabilities.report_files import ReportPaths, terminal, write
from nephoscope.capabilities.schema import compare_schema, result_schema

__all__ = [
    "ReportPaths",
    "build",
    "census_schema",
    "compare_schema",
    "result_schema",
    "terminal",
    "write",
]
