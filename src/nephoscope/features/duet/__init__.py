"""Two commands that were measured at the same time: which is faster."""
