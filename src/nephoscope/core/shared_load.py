"""A load that several generators share: who they are, and the name under which they are merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

GENERATORS, GENERATOR = "generators", "generator"
"""Parameters of a request generator: the number of those that share its load, and its own number
among them, from 0."""

STARTED, UNTIL_FAILURE = "generator_start", "counts_until_failure"
"""Documents of the trial of a generator: how long after the first one it began and how far its
clock was ahead of the controller's; what it had reported until it failed."""


def sharing_targets(setting: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the targets that share the load of a setting; () where each trial is a whole load.

    setting: the values of a `Setting`, as a run's manifest has them.
    """
    targets: Sequence[str] = setting.get("targets") or ()
    params: Mapping[str, Any] = setting.get("params") or {}
    shares = bool(setting.get("together")) and params.get(GENERATORS, 1) == len(targets) > 1
    return tuple(targets) if shares else ()


def merged_name(targets: Sequence[str]) -> str:
    """Returns the name that stands for all of them; no target can have it, as it has a blank."""
    return f"{len(targets)} generators"
