"""Autoscalers of clouds and clusters, each followed by its API: a file each.

`follow` runs as a program of a trial beside the load, and prints the same log as the reference
autoscaler: what it sees, what it decides, and the steps of each instance.
"""
