"""Live migration of a guest: total time, pause, lost packets and slowdown by dirty rate."""
