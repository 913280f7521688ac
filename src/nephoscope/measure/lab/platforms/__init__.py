"""How a host of a lab is realised: one file for each platform of `platform_table`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from nephoscope.measure.lab.platform_table import TABLE
from nephoscope.measure.lab.platforms.base import Platform


def _platform_of(file: str) -> Platform:
    platform: Platform = import_module(f"{__name__}.{file}").PLATFORM
    return platform


PLATFORMS: Mapping[str, Platform] = {name: _platform_of(name) for name in TABLE}
"""Name in a topology -> the platform, in the order of the table."""
