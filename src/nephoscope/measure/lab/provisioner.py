"""Labs, created all or nothing, found again by name, and removed; see `Provisioner`."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from nephoscope.core import programs
from nephoscope.core.errors import UsageError
from nephoscope.core.reading.sentences import choices
from nephoscope.core.tasks import in_thread
from nephoscope.measure.lab import bringup, check, files, leases, names, needs, state, sweep
from nephoscope.measure.lab.commands import Runner
from nephoscope.measure.lab.handle import Host, Lab, LinkImplementation, RemovedLab
from nephoscope.measure.lab.limits import cgroups
from nephoscope.measure.lab.network import delay_line, layout, links
from nephoscope.measure.lab.topology import Topology
from nephoscope.measure.provisioning import BROKEN, COMING_UP, LATER, UP, Provisioned, Say


class LabProvisioner:
    """Makes labs on this machine. is_leased: they end with this process also once they are up, see
    `leases`."""

    def __init__(self, *, is_leased: bool) -> None:
        self._is_leased = is_leased

    def quote(self, spec: Topology) -> None:
        """See `Provisioner.quote`: a lab rents nothing."""

    async def create(self, spec: Topology, *, say: Say) -> Lab:
        """See `Provisioner.create`; UsageError also for addresses that this machine uses."""
        needs.require(f"nephoscope lab up {spec.name}.yaml")
        check.fits_here(spec, lambda loc: "")
        bringup.require_platforms(spec)
        name = spec.name
        if name not in names.labs_in(names.RUN) and sweep.exists(name):
            raise state.clash(name)
        laid = layout.lay_out(spec)
        chosen = await asyncio.to_thread(bringup.links_of, laid)
        with state.making(name) as lock:
            try:
                leases.take(name)
                made = await bringup.Maker(laid, chosen, Runner(lock), say).make()
                if not self._is_leased:
                    leases.waive(name)
                return made
            except BaseException:
                await in_thread(sweep.sweep, name)
                leases.end(name)
                raise

    def existing(self) -> list[Provisioned]:
        """See `Provisioner.existing`."""
        return [_provisioned(name) for name in sorted(sweep.labs_here())]

    def open(self, name: str) -> Lab:
        """See `Provisioner.open`."""
        known = state.read(name)
        if not needs.can_see_labs() and name in sweep.labs_here():
            raise UsageError(
                f"Lab {name} is {needs.owned_by()}.",
                f"Run `{programs.as_root(f'nephoscope lab exec {name}/HOST')}`.",
            )
        if known is not None and (refusal := state.refusal(name, known)) is not None:
            raise UsageError(*refusal)
        if known is not None and known.get("phase") == UP and (problem := _problem(name, known)):
            raise UsageError(
                f"Lab {name} is broken: {problem}.",
                f"Remove it with `nephoscope lab down {name}`, then create it again.",
            )
        if known is None or known.get("phase") != UP:
            up_now = [lab.name for lab in self.existing() if lab.state == UP]
            here = choices("Up now", up_now, "No lab is up.")
            raise UsageError(f"No lab named {name} is up.", f"{here} Run `nephoscope lab up FILE`.")
        with _READING:
            topology, hosts, described = _as_written(json.dumps(known))
        warnings = tuple(known.get("warnings", ()))
        return Lab(name, topology, names.directory(name), dict(hosts), described, warnings)

    async def remove(self, name: str) -> RemovedLab:
        """See `Provisioner.remove`; Busy while another process is making or changing it."""

        def work() -> RemovedLab:
            with state.changing(name):
                removed = sweep.sweep(name)
                leases.end(name)
                return removed

        return await in_thread(work)

    async def remove_abandoned(self, name: str) -> RemovedLab | None:
        """Removes a lab whose process has ended; None where it has one now, or is being changed."""

        def work() -> RemovedLab | None:
            if state.is_busy(name):
                return None
            with state.changing(name):
                # Another command may have removed it, and a run made one of its name.
                return sweep.sweep(name) if leases.is_abandoned(name) else None

        return await in_thread(work)

    def remains(self, name: str) -> list[Path]:
        """Returns what of a lab is here: namespaces, control groups and folders."""
        leftovers = names.namespaces_of(name)
        leftovers += cgroups.lab_cgroups(name)
        folders = (names.directory(name), names.disks(name))
        return leftovers + [folder for folder in folders if folder.exists()]


LABS = LabProvisioner(is_leased=True)
BY_HAND = LabProvisioner(is_leased=False)
"""Makes labs that stay until somebody takes them down."""

_READING = threading.Lock()


@lru_cache(maxsize=4)
def _as_written(
    state_text: str,
) -> tuple[Topology, Mapping[str, Host], tuple[LinkImplementation, ...]]:
    """Returns what the state of a lab says. Each of its hosts, as a target, opens the same lab."""
    known = json.loads(state_text)
    topology = files.from_values(known["topology"])
    laid = layout.lay_out(topology)
    hosts = {
        host: bringup.host_written_down(bringup.plan_of(laid, host), known["hosts"].get(host, {}))
        for host in topology.hosts
    }
    return topology, hosts, bringup.described(laid, bringup.links_of(laid))


def _provisioned(name: str) -> Provisioned:
    if not needs.can_see_labs():
        return Provisioned(name, needs.owned_by(), (), None)
    known = state.read(name) or {}
    now = COMING_UP if state.is_busy(name) else BROKEN
    problem = ""
    if (refusal := state.refusal(name, known)) is not None:
        return Provisioned(name, LATER, (), None, " ".join(refusal))
    if known.get("phase") == UP:
        problem = _problem(name, known)
        now = BROKEN if problem else UP
    hosts = tuple((known.get("topology") or {}).get("hosts", ()))
    return Provisioned(name, now, hosts, known.get("since"), problem)


def _problem(name: str, known: Mapping[str, Any]) -> str:
    """Returns which delay line of a lab that is up has ended; '' where all run."""
    if state.is_busy(name):
        return ""  # whoever changes the lab may be replacing the line
    lines = [link for link, path in known.get("paths", {}).items() if path == links.LINE]
    if (known.get("topology") or {}).get("geo"):
        lines.append(delay_line.HUB)
    ended = [f"'{line}'" for line in lines if not delay_line.is_running(name, line)]
    if not ended:
        return ""
    return f"the delay line of {', '.join(ended)} has ended, so packets no longer pass"
