"""Token buckets behind a series of rates: burst, baseline, credit, knee and refill."""
