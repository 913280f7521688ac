"""Platforms as their operator sees them: boot, memory per guest, density, and their overhead."""
