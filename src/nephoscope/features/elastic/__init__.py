"""Elasticity: how fast, how right and how expensive an autoscaler is."""
