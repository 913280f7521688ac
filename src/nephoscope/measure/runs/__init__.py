"""Plans are measured here: the only room that drives targets.

Results need names of what is not measured, without the programs that measure.
"""

from typing import TYPE_CHECKING

from nephoscope.core.lazy import names_of

if TYPE_CHECKING:
    from nephoscope.measure.runs.observer import Observer, Status
    from nephoscope.measure.runs.reported import mark_reported
    from nephoscope.measure.runs.runner import execute
    from nephoscope.measure.runs.schedule.alternatives import Outcome
    from nephoscope.measure.runs.trials.failure_names import LOST

__all__ = ["LOST", "Observer", "Outcome", "Status", "execute", "mark_reported"]

__getattr__ = names_of(
    __name__,
    {
        "LOST": "nephoscope.measure.runs.trials.failure_names",
        "Observer": "nephoscope.measure.runs.observer",
        "Outcome": "nephoscope.measure.runs.schedule.alternatives",
        "Status": "nephoscope.measure.runs.observer",
        "execute": "nephoscope.measure.runs.runner",
        "mark_reported": "nephoscope.measure.runs.reported",
    },
)
