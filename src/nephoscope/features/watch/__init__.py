"""Repeats a plan on a schedule: `nephoscope watch`."""
