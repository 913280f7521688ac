"""A capability that only tests know: the smallest and the largest value of `null`."""
