"""Published figures compared with the results of a run."""
