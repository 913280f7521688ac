"""Factors of a plan: what each of them sets, and its levels."""
