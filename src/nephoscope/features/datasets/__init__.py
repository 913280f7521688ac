"""Data sets for publication: tables of runs, described for machines."""
