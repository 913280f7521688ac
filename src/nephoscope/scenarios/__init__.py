"""Scenarios for the simulator: a YAML file or a built-in one, checked, with the place of an error.

What a scenario may say is defined once, in crates/sim; here it is read, put over with `--set`, and
handed to the simulator, whose words about a wrong key are led back to the line of the user's file.
"""

from nephoscope.scenarios.scenario import (
    GEO,
    KINDS,
    PLACE,
    SCHEDULER,
    SELECTION,
    Kind,
    Scenario,
    builtin,
    load,
    read,
    text_of,
)

__all__ = [
    "GEO",
    "KINDS",
    "PLACE",
    "SCHEDULER",
    "SELECTION",
    "Kind",
    "Scenario",
    "builtin",
    "load",
    "read",
    "text_of",
]
