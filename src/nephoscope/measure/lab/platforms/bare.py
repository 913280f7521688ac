"""Bare: a program in the host's namespace and groups, on the machine's own kernel and files."""

from __future__ import annotations

import time

from nephoscope.measure.lab.boot import BootTimes
from nephoscope.measure.lab.commands import entering
from nephoscope.measure.lab.handle import HostPlan, StartedHost
from nephoscope.measure.lab.platforms.base import Platform, first_program
from nephoscope.measure.provisioning import Say

_REASONS = {
    "output": "a bare host has no program of its own that prints",
    "kernel": "a bare host runs on the machine's own kernel",
    "userland": "a bare host has no init of its own",
}


class Bare(Platform):
    """No more than what the lab has made already."""

    async def start(
        self, plan: HostPlan, *, say: Say, lock: int | None = None, keep: bool = False
    ) -> StartedHost:
        """See `Platform.start`."""
        plan.hosts_path.write_text(plan.hosts_text, encoding="utf-8")
        began = time.monotonic_ns()
        hidden = plan.spec.cpu.hidden
        entry = (*entering(netns=plan.netns, cgroups=plan.cgroups, sysfs=True, hide_limits=hidden),)
        await first_program(plan, entry)
        return StartedHost(BootTimes(None, None, time.monotonic_ns() - began, _REASONS), entry)


PLATFORM = Bare()
