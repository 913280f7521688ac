"""Decides which trial comes next and when there are enough; no clock, no file, no target."""
