"""Plans: a YAML file becomes a checked plan, its settings, and the order of its trials."""

from nephoscope.plans.design.crossing import Crossing
from nephoscope.plans.design.order import (
    Step,
    baseline_of,
    nest_of,
    order_aba_round,
    order_round,
    simulation_seed,
    warmup_rounds,
)
from nephoscope.plans.estimate import Estimate as PlanEstimate
from nephoscope.plans.estimate import estimate, long_time, money_spent, refuse_too_long
from nephoscope.plans.expand import crossings, expand
from nephoscope.plans.files.load import load, plan_hash, plan_values, read
from nephoscope.plans.model import Entry, Plan, Repeat
from nephoscope.plans.schema import plan_schema
from nephoscope.plans.side_effects import touches
from nephoscope.plans.survey import (
    LEVELS,
    census,
    fit_to_machines,
    single,
    survey,
    thread_levels,
)
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
    "baseline_of",
    "census",
    "crossings",
    "estimate",
    "expand",
    "fit_to_machines",
    "load",
    "long_time",
    "money_spent",
    "nest_of",
    "order_aba_round",
    "order_round",
    "plan_hash",
    "plan_schema",
    "plan_values",
    "read",
    "refuse_too_long",
    "simulation_seed",
    "single",
    "survey",
    "thread_levels",
    "touches",
    "warmup_rounds",
]
