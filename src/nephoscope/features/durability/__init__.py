"""Durability of stored objects: losses, and what they say about the rate of loss."""
