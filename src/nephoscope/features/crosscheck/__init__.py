"""Native benchmarks beside third-party tools that measure the same quantity in one run."""
