"""Executes one group of trials: prepare, start, measure, stop, clean; judges what came of it."""
