"""Where it is measured. One file for each kind of target; the contract suite runs over all."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nephoscope import plans
from nephoscope.targets.base import Done, Peer, Running, Target, TargetTrial
from nephoscope.targets.local import LocalTarget
from nephoscope.targets.probe import find_probe
from nephoscope.targets.texts import parse


def _local(record: plans.Target) -> Target:
    return LocalTarget(record.name)


def _ssh(record: plans.Target) -> Target:
    # asyncssh takes longer to import than a whole `nephoscope --help`.
    from nephoscope.targets import ssh

    return ssh.make(record)


def _lab(record: plans.Target) -> Target:
    from nephoscope.targets import lab

    return lab.make(record)


def _sim(record: plans.Target) -> Target:
    from nephoscope.targets import simulated

    return simulated.make(record)


TARGETS: Mapping[str, Callable[[plans.Target], Target]] = {
    "local": _local,
    "ssh": _ssh,
    "lab": _lab,
    "sim": _sim,
}
"""Kind -> factory that takes the plan's record of it; in the order of lists and pages."""

__all__ = [
    "TARGETS",
    "Done",
    "LocalTarget",
    "Peer",
    "Running",
    "Target",
    "TargetTrial",
    "find_probe",
    "parse",
]
