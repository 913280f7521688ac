"""Plans: a YAML file becomes a checked plan, its settings, and the order of its trials."""

from nephoscope.plans.design.crossing import Crossing as Crossing
from nephoscope.plans.design.order import baseline_of as baseline_of
from nephoscope.plans.design.order import nest_of as nest_of
from nephoscope.plans.design.order import order_aba_round as order_aba_round
from nephoscope.plans.design.order import order_round as order_round
from nephoscope.plans.design.order import trial_seed as trial_seed
from nephoscope.plans.design.order import warmup_rounds as warmup_rounds
from nephoscope.plans.estimate import estimate as estimate
from nephoscope.plans.estimate import long_time as long_time
from nephoscope.plans.estimate import refuse_too_long as refuse_too_long
from nephoscope.plans.expand import crossings as crossings
from nephoscope.plans.expand import expand as expand
from nephoscope.plans.files.load import load as load
from nephoscope.plans.files.load import plan_hash as plan_hash
from nephoscope.plans.files.load import plan_of as plan_of
from nephoscope.plans.files.load import plan_values as plan_values
from nephoscope.plans.files.load import read as read
from nephoscope.plans.model import Plan as Plan
from nephoscope.plans.model import Repeat as Repeat
from nephoscope.plans.schema import plan_schema as plan_schema
from nephoscope.plans.side_effects import touches as touches
from nephoscope.plans.survey import census as census
from nephoscope.plans.survey import fit_to_machines as fit_to_machines
from nephoscope.plans.survey import single as single
from nephoscope.plans.survey import survey as survey
from nephoscope.targets.kinds.record import Touch as Touch
