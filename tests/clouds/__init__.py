"""Control planes of clouds that tests rent machines from, real ones and doubles."""
