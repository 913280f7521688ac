"""The group `nephoscope cloud` with all of its commands; those in other files join it here."""

from __future__ import annotations

from nephoscope.features.cloud import (
    account_command,
    boot_command,
    census_command,
    credits_command,
    distances_command,
    fleet_command,
    four_tests_command,
    pick_command,
    removal_command,
    survival_command,
    volumes_command,
    where_command,
)
from nephoscope.features.cloud.command import cloud as cloud

JOINED = (
    removal_command.down,
    removal_command.sweep,
    account_command.bill,
    account_command.policy,
    boot_command.boot,
    census_command.census,
    credits_command.credits_,
    distances_command.distances,
    fleet_command.fleet,
    fleet_command.collect,
    four_tests_command.four_tests,
    pick_command.pick,
    survival_command.survival,
    volumes_command.volumes,
    where_command.where,
)
"""Commands that stand in other files than the group; importing them is what adds them."""
