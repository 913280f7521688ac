"""Compares runs, or files of numbers, and states which is better and by how much."""
