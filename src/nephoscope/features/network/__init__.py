"""Analyses of a network path: delay, loss, voice quality, bandwidth, shaping and congestion."""
