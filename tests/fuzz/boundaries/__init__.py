"""Everything that Nephoscope reads from outside, as boundaries that a test can attack."""

from __future__ import annotations

from . import configured, figures, network, programs, service_levels, stored_runs

BOUNDARIES = (
    *configured.BOUNDARIES,
    *figures.BOUNDARIES,
    *service_levels.BOUNDARIES,
    *stored_runs.BOUNDARIES,
    *programs.BOUNDARIES,
    *network.BOUNDARIES,
)
