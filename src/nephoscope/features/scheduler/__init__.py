"""Infers from inside a machine how the scheduler below it shares CPU time."""
