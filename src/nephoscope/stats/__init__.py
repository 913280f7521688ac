"""Arrays in, Estimates out; no I/O, no clock. One question a file.

Nothing is imported here: scipy costs more than a command's whole start-up and is taken only
inside the functions that need it.
"""
