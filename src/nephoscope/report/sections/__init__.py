"""Sections of the report that every run has."""
