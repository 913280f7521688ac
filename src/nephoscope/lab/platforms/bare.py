"""Bare: a program in the host's namespace and groups, on the machine's own kernel and files."""

from __future__ import annotations

import time

from nephoscope.errors import Lacking
from nephoscope.lab.boot import BootTimes
from nephoscope.lab.handle import HostPlan
from nephoscope.lab.launcher import entering
from nephoscope.lab.platforms.base import Started, first_program
from nephoscope.provisioning import Say

_REASONS = {
    "kernel": "a bare host runs on the machine's own kernel",
    "userland": "a bare host has no init of its own",
}


def entry_of(plan: HostPlan) -> tuple[str, ...]:
    """The words before a program that runs inside."""
    hidden = plan.spec.cpu.hidden
    return tuple(entering(netns=plan.netns, cgroups=plan.cgroups, sysfs=True, hide_limits=hidden))


class Bare:
    """No more than what the lab has made already."""

    name = "bare"

    def lacking(self) -> Lacking | None:
        """See `Platform.lacking`."""
        return None

    async def prepare(self, say: Say) -> None:
        """See `Platform.prepare`."""

    async def start(
        self, plan: HostPlan, *, say: Say, lock: int | None = None, keep: bool = False
    ) -> Started:
        """See `Platform.start`."""
        began = time.monotonic_ns()
        entry = entry_of(plan)
        await first_program(plan, entry)
        return Started(BootTimes(None, None, time.monotonic_ns() - began, _REASONS), entry)

    async def stop(self, plan: HostPlan) -> None:
        """See `Platform.stop`: nothing of it stays."""
