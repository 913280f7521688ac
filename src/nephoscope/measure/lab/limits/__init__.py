"""What a lab host may use: CPUs, memory and disk, by control groups."""
