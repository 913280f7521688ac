"""Plans are measured here: the only room that drives targets."""

from nephoscope.measure.runs.observer import Observer, Status
from nephoscope.measure.runs.runner import execute, mark_reported
from nephoscope.measure.runs.schedule.alternatives import LOST, Outcome

__all__ = ["LOST", "Observer", "Outcome", "Status", "execute", "mark_reported"]
