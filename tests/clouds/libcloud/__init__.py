"""Doubles of clouds that Apache Libcloud speaks to: as much of their APIs as its drivers use."""
