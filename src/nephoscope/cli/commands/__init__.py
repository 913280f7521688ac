"""The verbs of the command line, one file each: run(…) does the work and returns the exit code."""
