"""Where it is measured: kinds of targets, ways to their machines, the probe there."""

from __future__ import annotations

from nephoscope.targets.base import Done, Peer, Running, Target, TargetTrial
from nephoscope.targets.kinds import KINDS, parse
from nephoscope.targets.kinds.record import TargetRecord


def make(record: TargetRecord) -> Target:
    """Returns the target of a plan's record, not yet open. Raises UsageError."""
    return record.make()


__all__ = [
    "KINDS",
    "Done",
    "Peer",
    "Running",
    "Target",
    "TargetRecord",
    "TargetTrial",
    "make",
    "parse",
]
