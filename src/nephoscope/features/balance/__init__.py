"""Load balancers: throughput, added latency, fairness over the servers behind, failing servers."""
