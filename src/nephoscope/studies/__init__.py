"""Reference studies: their published numbers, and the comparison with runs of their plans.

A study is a folder under studies/: `published.csv` (every number of its text), `tables.yaml` (the
shape of its tables), `study.yaml` (its parts, and which metric answers which of its numbers) and
plan files. None of it is code; another study needs none.
"""

from nephoscope.studies.catalogue import ReferenceStudy, load, load_all, names, plan_of
from nephoscope.studies.comparison.conclusions import ConclusionOutcome, conclude
from nephoscope.studies.comparison.part_result import PartResult, compare_part
from nephoscope.studies.comparison.rules import Mark
from nephoscope.studies.comparison.side_by_side import Outcome, compare
from nephoscope.studies.definition.study import SCALES, Part
from nephoscope.studies.report.files import as_json, document_of, write

__all__ = [
    "SCALES",
    "ConclusionOutcome",
    "Mark",
    "Outcome",
    "Part",
    "PartResult",
    "ReferenceStudy",
    "as_json",
    "compare",
    "compare_part",
    "conclude",
    "document_of",
    "load",
    "load_all",
    "names",
    "plan_of",
    "write",
]
