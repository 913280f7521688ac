"""Builds the parts of a result that every run has: metric lines, counters, execution."""
