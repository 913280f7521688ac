"""Nephoscope measures clouds the way their users feel them."""

__version__ = "0.1.0"
