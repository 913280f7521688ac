"""Plans are measured here: the only room that drives targets."""

from nephoscope.runs.alternatives import LOST, Outcome
from nephoscope.runs.observer import Observer, Status
from nephoscope.runs.runner import execute, mark_reported

__all__ = ["LOST", "Observer", "Outcome", "Status", "execute", "mark_reported"]
