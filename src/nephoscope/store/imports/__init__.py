"""Results of other tools: what reads their files (importing.py), and a format in each module."""
