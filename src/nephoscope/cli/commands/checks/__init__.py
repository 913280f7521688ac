"""Checks of `doctor`: one function each, listed in table.py."""
