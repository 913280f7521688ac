"""Advice on an application: its class, service levels, benchmarks, and predicted performance."""
