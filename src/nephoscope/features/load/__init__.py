"""Load on a server: latency and throughput at a rate, and the highest rate under an objective."""
