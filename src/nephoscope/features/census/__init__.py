"""Finds which CPU models stand behind an instance type, and how fast each is."""
