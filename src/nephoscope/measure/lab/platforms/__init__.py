"""How a host of a lab is realised. To add a way: one file here, and its line in PLATFORMS."""

from __future__ import annotations

from collections.abc import Mapping

from nephoscope.measure.lab.platforms.bare import Bare
from nephoscope.measure.lab.platforms.base import Platform
from nephoscope.measure.lab.platforms.container import Container
from nephoscope.measure.lab.platforms.qemu import Qemu
from nephoscope.measure.lab.platforms.uml import Uml

PLATFORMS: Mapping[str, Platform] = {
    platform.name: platform for platform in (Bare(), Container(), Uml(), Qemu())
}
"""Name in a topology -> the platform, in the order of what they cost."""
