"""Machines that are reached over ssh."""
