"""Names of failures that results ask for."""

DEADLINE = "deadline"
"""Failure name of whatever took longer than it may."""

LOST = "target_lost"
"""Failure name of a trial whose target did not answer, and outcome of what was given up for it."""
