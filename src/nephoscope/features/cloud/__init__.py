"""Renting machines from clouds, and what is measured by renting."""
