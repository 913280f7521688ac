"""Scenarios for the simulator: a YAML file or a built-in one, checked, with the place of an error.

What a scenario may say is defined once, in crates/sim; here it is read, put over with `--set`, and
handed to the simulator, whose words about a wrong key are led back to the line of the user's file.
"""

from nephoscope.catalog.scenarios.scenario import GEO as GEO
from nephoscope.catalog.scenarios.scenario import KINDS as KINDS
from nephoscope.catalog.scenarios.scenario import PLACE as PLACE
from nephoscope.catalog.scenarios.scenario import SCHEDULER as SCHEDULER
from nephoscope.catalog.scenarios.scenario import SELECTION as SELECTION
from nephoscope.catalog.scenarios.scenario import Scenario as Scenario
from nephoscope.catalog.scenarios.scenario import SimulationKind as SimulationKind
from nephoscope.catalog.scenarios.scenario import builtin as builtin
from nephoscope.catalog.scenarios.scenario import load as load
from nephoscope.catalog.scenarios.scenario import read as read
from nephoscope.catalog.scenarios.scenario import text_of as text_of
