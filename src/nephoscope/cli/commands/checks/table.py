"""The checks of `doctor` in the order of printing.

A check never raises: what cannot be seen is told as such.
"""

from __future__ import annotations

from collections.abc import Callable

from nephoscope.cli.commands.checks import kernel, limits, places, programs
from nephoscope.cli.commands.checks.frame import CheckAnswer, Places

CHECKS: tuple[Callable[[Places], CheckAnswer], ...] = (
    kernel.system,
    programs.python,
    programs.probe,
    places.store,
    places.temporary,
    places.direct_io,
    kernel.io_uring,
    kernel.clock,
    kernel.tsc,
    limits.cpus,
    limits.cgroup,
    kernel.steal,
    kernel.pressure,
    kernel.huge_pages,
    limits.memory_lock,
    limits.loopback,
    limits.deadline,
    limits.net_admin,
    programs.terminal,
    programs.tools,
)
