"""Where it is measured. One file for each kind of target; the contract suite runs over all."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nephoscope.targets.base import Done, Target, TargetTrial
from nephoscope.targets.local import LocalTarget
from nephoscope.targets.probe import find_probe

TARGETS: Mapping[str, Callable[[str], Target]] = {
    "local": LocalTarget,
}
"""Kind -> factory that takes the target's name; in the order of lists and pages."""

__all__ = ["TARGETS", "Done", "LocalTarget", "Target", "TargetTrial", "find_probe"]
