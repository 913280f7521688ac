"""Engines that read a store, and the check that they give the same results."""
