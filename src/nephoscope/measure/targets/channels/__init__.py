"""Ways to start programs on a machine: as children, inside a lab host, through a shell there."""
