"""The group `nephoscope cloud` with all of its commands; those in other files join it here."""

from __future__ import annotations

from nephoscope.features.cloud import (
    boot_command,
    census_command,
    distances_command,
    four_tests_command,
    pick_command,
)
from nephoscope.features.cloud.command import cloud as cloud

JOINED = (
    boot_command.boot,
    census_command.census,
    distances_command.distances,
    four_tests_command.four_tests,
    pick_command.pick,
)
"""Commands that stand in other files than the group; importing them is what adds them."""
