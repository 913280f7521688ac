"""Statistics of arrays: estimates with intervals, tests, and when to refuse an answer."""
