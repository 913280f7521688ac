"""Everything that Nephoscope reads from outside, as boundaries that a test can attack."""

from __future__ import annotations

from . import configured, figures, network, programs, server_types, service_levels, stored_runs

BOUNDARIES = (
    *configured.BOUNDARIES,
    *figures.BOUNDARIES,
    *server_types.BOUNDARIES,
    *service_levels.BOUNDARIES,
    *stored_runs.BOUNDARIES,
    *programs.BOUNDARIES,
    *network.BOUNDARIES,
)
