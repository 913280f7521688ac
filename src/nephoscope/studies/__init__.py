"""The five reference studies: what they published, and what ours says beside it.

A study is a folder under studies/: `published.csv` (every number of its text), `tables.yaml` (the
shape of its tables), `study.yaml` (its parts, and which of our metrics answers which of its cells)
and plan files. Nothing of it is code; a sixth study needs none.
"""

from nephoscope.studies.beside import beside
from nephoscope.studies.comparing import Mark, Outcome, compare
from nephoscope.studies.concluding import Concluded, conclude
from nephoscope.studies.page import PartResult, counted
from nephoscope.studies.records import SCALES, Part, Study
from nephoscope.studies.shelf import Number, Shelf, load, load_all, names, plan_of
from nephoscope.studies.writing import document_of, write

__all__ = [
    "SCALES",
    "Concluded",
    "Mark",
    "Number",
    "Outcome",
    "Part",
    "PartResult",
    "Shelf",
    "Study",
    "beside",
    "compare",
    "conclude",
    "counted",
    "document_of",
    "load",
    "load_all",
    "names",
    "plan_of",
    "write",
]
