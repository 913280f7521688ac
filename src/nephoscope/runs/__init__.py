"""Plans are measured here: the only room that drives targets."""

from nephoscope.runs.observer import Observer, Status
from nephoscope.runs.runner import execute, mark_reported
from nephoscope.runs.schedule.alternatives import LOST, Outcome

__all__ = ["LOST", "Observer", "Outcome", "Status", "execute", "mark_reported"]
