"""Parallel work: steps that wait for their slowest rank."""
