"""Records, units, errors and readers that everything uses."""
