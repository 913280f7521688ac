"""Clients and servers of the benchmarks that have both: where they ran, and what a client used."""
