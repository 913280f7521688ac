"""Targets that run one benchmark together, as one system: a virtual cluster."""
