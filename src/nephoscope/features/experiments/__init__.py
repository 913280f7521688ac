"""Analyses designed experiments: effects, interactions, nested designs."""
