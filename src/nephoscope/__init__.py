"""Benchmarks of cloud machines and networks, with confidence intervals."""

__version__ = "0.2.0"
