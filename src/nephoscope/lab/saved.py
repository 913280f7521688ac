"""A host as it is written down, so that another process reaches it too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nephoscope.lab.boot import BootTimes
from nephoscope.lab.handle import GuestAccess, Host, HostPlan
from nephoscope.lab.platforms.base import Started


def host_values(host: Host) -> dict[str, Any]:
    """Plain values (JSON) of what a platform said about a host."""
    guest = None
    if host.guest is not None:
        guest = {
            key: str(value) if isinstance(value, Path) else value
            for key, value in asdict(host.guest).items()
        }
    return {
        "entry": list(host.entry),
        "guest": guest,
        "boot": None if host.boot is None else host.boot.as_dict(),
        "details": dict(host.details),
    }


def host_from(plan: HostPlan, values: Mapping[str, Any], started: Started | None = None) -> Host:
    """The host of a plan, with what its platform said now, or what was written down."""
    if started is None:
        started = _started(values)
    return Host(
        name=plan.name,
        platform=plan.spec.platform,
        topology=plan.spec,
        netns=plan.netns,
        cgroups=plan.cgroups,
        address=plan.address,
        mac=plan.mac,
        directory=plan.directory,
        nics=plan.nics,
        entry=tuple(started.entry),
        guest=started.guest,
        boot=started.boot,
        details=started.details,
    )


def _started(values: Mapping[str, Any]) -> Started:
    guest = values.get("guest")
    if guest is not None:
        paths = {key: Path(guest[key]) for key in ("netns", "identity", "known_hosts")}
        guest = GuestAccess(**{**guest, **paths})
    return Started(
        boot=BootTimes.from_dict(values.get("boot") or {}),
        entry=tuple(values.get("entry", ())),
        guest=guest,
        details=values.get("details", {}),
    )
