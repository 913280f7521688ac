"""Every check, in the order in which `nephoscope lab check` runs them."""

from __future__ import annotations

from nephoscope.labcheck.frame import Check

CHECKS: tuple[Check, ...] = ()
"""Put together from the CHECKS of the files beside this one."""
