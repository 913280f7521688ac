"""Simulates scaling rules on a trace of load, and searches the best settings."""
