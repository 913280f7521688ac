"""Which scheduler takes the CPU away: from looks at the clock to a verdict in words."""

from nephoscope.scheduler.inference.infer import infer
from nephoscope.scheduler.inference.verdict import (
    Fit,
    Gap,
    Look,
    Loop,
    Obtained,
    Scheduler,
    SchedulerVerdicts,
    Word,
    of_kind,
)

__all__ = [
    "Fit",
    "Gap",
    "Look",
    "Loop",
    "Obtained",
    "Scheduler",
    "SchedulerVerdicts",
    "Word",
    "infer",
    "of_kind",
]
