"""A measured machine among all published ones of its class."""
