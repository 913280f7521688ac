"""Summaries of runs, and their merging into day files when their trials grow old."""
