"""What is to be measured: YAML -> Plan -> settings -> the order of trials of each round."""

from nephoscope.plans.expand import expand
from nephoscope.plans.identity import plan_hash, plan_values
from nephoscope.plans.load import load
from nephoscope.plans.model import KINDS, Entry, Plan, Repeat, Target
from nephoscope.plans.schedule import round_order, rounds_before_first
from nephoscope.plans.schema import plan_schema
from nephoscope.plans.survey import LEVELS, single, survey, thread_levels

__all__ = [
    "KINDS",
    "LEVELS",
    "Entry",
    "Plan",
    "Repeat",
    "Target",
    "expand",
    "load",
    "plan_hash",
    "plan_schema",
    "plan_values",
    "round_order",
    "rounds_before_first",
    "single",
    "survey",
    "thread_levels",
]
