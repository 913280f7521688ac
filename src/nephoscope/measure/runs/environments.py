"""Which environment a plan needs: its lab, its rented machines, or none."""

from __future__ import annotations

from collections.abc import Callable

from nephoscope.measure.plans import Plan
from nephoscope.measure.runs.environment import Environment
from nephoscope.measure.targets.kinds.rented import RentedRecord
from nephoscope.store import StoredRun


def environment_of(plan: Plan, run: StoredRun, say: Callable[[str], None]) -> Environment:
    """Returns what this plan's targets stand on. Raises UsageError."""
    # Labs, and the libraries of clouds, are for plans that need them.
    if any(isinstance(target, RentedRecord) for target in plan.targets):
        from nephoscope.measure.runs.rented_environment import RentedEnvironment

        return RentedEnvironment(plan, run, say)
    if plan.lab is not None:
        from nephoscope.measure.runs.lab_environment import LabEnvironment

        return LabEnvironment(plan, run, say)
    return Environment()
