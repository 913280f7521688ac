"""Machines that are rented from a cloud: what is asked of a provider, and what is done with it."""
