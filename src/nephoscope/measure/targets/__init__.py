"""Where it is measured: kinds of targets, ways to their machines, the probe there."""

from nephoscope.measure.targets.base import Done, Peer, TargetTrial
from nephoscope.measure.targets.kinds import KINDS, parse
from nephoscope.measure.targets.kinds.record import TargetRecord

__all__ = ["KINDS", "Done", "Peer", "TargetRecord", "TargetTrial", "parse"]
