"""What a run says: from the store to the one record that terminal, report and --json all read."""

from nephoscope.results.build import build
from nephoscope.results.census_schema import census_schema
from nephoscope.results.schema import compare_schema, result_schema

__all__ = ["build", "census_schema", "compare_schema", "result_schema"]
