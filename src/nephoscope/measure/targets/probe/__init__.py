"""The probe on a machine: found, started, introduced, read."""
