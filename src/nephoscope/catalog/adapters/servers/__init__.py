"""Servers that several tools measure, as far sides of their adapters."""
