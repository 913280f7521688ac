"""Where it is measured: kinds of targets, ways to their machines, the probe there."""

from typing import TYPE_CHECKING

from nephoscope.core.lazy import names_of

if TYPE_CHECKING:
    from nephoscope.measure.targets.base import Done, Peer, TargetTrial
    from nephoscope.measure.targets.kinds import KINDS, parse
    from nephoscope.measure.targets.kinds.record import TargetRecord

__all__ = ["KINDS", "Done", "Peer", "TargetRecord", "TargetTrial", "parse"]

__getattr__ = names_of(
    __name__,
    {
        "Done": "nephoscope.measure.targets.base",
        "KINDS": "nephoscope.measure.targets.kinds",
        "Peer": "nephoscope.measure.targets.base",
        "TargetRecord": "nephoscope.measure.targets.kinds.record",
        "TargetTrial": "nephoscope.measure.targets.base",
        "parse": "nephoscope.measure.targets.kinds",
    },
)
