"""Measures how much a neighbour takes away, of which resource, and whether it comes back."""
