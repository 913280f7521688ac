"""Change points: steps of a series at every cadence, and changes of its noise."""
