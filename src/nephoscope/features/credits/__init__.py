"""Burst credits: token buckets of CPU, disk and network in series of rates."""
