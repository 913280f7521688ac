"""Values of units of a group that was never measured, from cheap measurements of the same units."""
