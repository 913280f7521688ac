"""What is to be measured: YAML -> Plan -> settings -> the order of trials of each round."""

from nephoscope.plans.around import Step, around_order, quiet_of
from nephoscope.plans.combine import Crossing
from nephoscope.plans.estimate import Estimate as PlanEstimate
from nephoscope.plans.estimate import estimate, long_time, money_spent, refuse_too_long
from nephoscope.plans.expand import crossings, expand
from nephoscope.plans.identity import plan_hash, plan_values
from nephoscope.plans.load import load, read
from nephoscope.plans.model import Entry, Plan, Repeat
from nephoscope.plans.schedule import chance, nest_of, round_order, rounds_before_first
from nephoscope.plans.schema import plan_schema
from nephoscope.plans.survey import LEVELS, census, single, survey, thread_levels
from nephoscope.plans.touches import touches
from nephoscope.targets.kinds.record import TargetRecord as Target
from nephoscope.targets.kinds.record import Touch

__all__ = [
    "LEVELS",
    "Crossing",
    "Entry",
    "Plan",
    "PlanEstimate",
    "Repeat",
    "Step",
    "Target",
    "Touch",
    "around_order",
    "census",
    "chance",
    "crossings",
    "estimate",
    "expand",
    "load",
    "long_time",
    "money_spent",
    "nest_of",
    "plan_hash",
    "plan_schema",
    "plan_values",
    "quiet_of",
    "read",
    "refuse_too_long",
    "round_order",
    "rounds_before_first",
    "single",
    "survey",
    "thread_levels",
    "touches",
]
