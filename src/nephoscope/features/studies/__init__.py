"""Reference studies: their published numbers, and the comparison with runs of their plans.

A study is a folder under studies/: `published.csv` (every number of its text), `tables.yaml` (the
shape of its tables), `study.yaml` (its parts, and which metric answers which of its numbers) and
plan files. None of it is code; another study needs none.
"""
