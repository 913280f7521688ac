"""Live migration of a QEMU guest between two hosts of a lab."""
