"""Ranks alternatives such as platforms by metric, overall, and for application domains."""
