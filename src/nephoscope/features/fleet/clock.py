"""Offsets of the targets' clocks from the controller's."""

from __future__ import annotations

import time
from collections.abc import Sequence

from nephoscope.core.errors import NephoscopeError
from nephoscope.measure.targets.kinds.record import TargetRecord as Target
from nephoscope.measure.targets.probe.target import Target as Machine

_SHORT = "null"
_TRIES = 3
_TIMEOUT_S = 10.0


async def clock_offsets(targets: Sequence[Target]) -> dict[str, tuple[float, float]]:
    """Returns target -> its clock minus the controller's, and the bound of its error, in ns.

    The clock is read by a short trial: the offset lies within half of the time that the trial took,
    and the shortest of three counts. A target that does not answer has none.
    """
    offsets = {}
    for record in targets:
        target = record.make()
        try:
            await target.open()
            if not target.shares_clock:
                measured = [
                    offset for _ in range(_TRIES) if (offset := await _offset(target)) is not None
                ]
                if measured:
                    offsets[record.name] = min(measured, key=lambda sample: sample[1])
        except NephoscopeError:
            continue
        finally:
            await target.close()
    return offsets


async def _offset(target: Machine) -> tuple[float, float] | None:
    """The offset that one short trial shows, and half of the time that it took."""
    before_ns = time.time_ns()
    trial = await target.run(_SHORT, {}, _TIMEOUT_S)
    after_ns = time.time_ns()
    if trial.done is None or trial.done.started_wall_ns is None:
        return None
    middle_ns = (before_ns + after_ns) / 2
    return trial.done.started_wall_ns - middle_ns, (after_ns - before_ns) / 2
