"""Names of failures that results ask for."""

DEADLINE = "deadline"
"""Failure name of whatever took longer than it may."""
