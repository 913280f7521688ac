"""The state of a rental, from its folder here and the cloud's own lists."""

from __future__ import annotations

import getpass
import os
import re
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from nephoscope import __version__
from nephoscope.core.format_versions import RENTAL
from nephoscope.core.naming import plural
from nephoscope.measure.cloud.bucket_listing import BUCKET
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.model import CloudResource, Kind, ResourceState, Tags
from nephoscope.measure.cloud.spec import RentalSpec
from nephoscope.measure.provisioning import BROKEN, COMING_UP, LATER, UP, Provisioned


def provisioned(
    name: str, folder: RentalFolder | None, resources: Sequence[CloudResource]
) -> Provisioned:
    """Returns what is left of a rental. folder: its own here, None where there is none; resources:
    of it, as the cloud lists them."""
    if folder is not None and (refusal := folder.refusal()) is not None:
        return Provisioned(name, LATER, (), None, " ".join(refusal))
    known = folder.read() if folder is not None else {}
    machines = [resource for resource in resources if resource.kind is Kind.MACHINE]
    since = known.get("since") or min(
        (resource.created_s for resource in resources if resource.created_s is not None),
        default=None,
    )
    by_id = {id_: host for host, id_ in known.get("hosts", {}).items()}
    hosts = tuple(
        sorted(by_id.get(resource.id, resource.name or resource.id) for resource in machines)
    )
    if folder is not None and known.get("phase") == UP:
        running = {resource.id for resource in machines if resource.state is ResourceState.READY}
        lost = [host for id_, host in by_id.items() if id_ not in running]
        if BUCKET in known:
            return Provisioned(name, UP, hosts, since, _of_unattended(name, known, len(lost)))
        problem = f"{', '.join(lost)} no longer runs" if lost else ""
        return Provisioned(name, BROKEN if lost else UP, hosts, since, problem)
    if folder is not None and folder.is_held():
        return Provisioned(name, COMING_UP, hosts, since)
    left = f"{plural(len(resources), 'resource')} left" if resources else "nothing of it is left"
    expired = [resource for resource in resources if resource.tags.expires_s < time.time()]
    return Provisioned(name, BROKEN, hosts, since, f"{left}{', expired' if expired else ''}")


def _of_unattended(name: str, known: Mapping[str, Any], ended: int) -> str:
    """Machines that end by themselves are no failure: what they measured is in the bucket."""
    return (
        f"{ended} of {plural(len(known['hosts']), 'machine')} ended or not up yet; results: "
        f"`nephoscope cloud collect {name}`"
    )


def own_name() -> str:
    """Returns the owner of what this user rents from this machine, a word for tags."""
    text = f"{getpass.getuser()}-{socket.gethostname()}".lower()
    return re.sub(r"[^a-z0-9]+", "-", text).strip("-")[:60].strip("-") or "somebody"


def tags_of(spec: RentalSpec, expires_s: int) -> Tags:
    """Returns the tags of a rental."""
    return Tags(spec.name, spec.owner or own_name(), expires_s)


def document_of(spec: RentalSpec, expires_s: int) -> dict[str, Any]:
    """Returns what the folder of a rental says while it is made."""
    return {
        "version": RENTAL.version,
        "nephoscope": __version__,
        "owner": spec.owner or own_name(),
        "expires_s": expires_s,
        "regions": sorted({group.region for group in spec.groups}),
        "phase": COMING_UP,
        "since": time.time(),
        "is_kept": spec.is_kept,
        "pid": os.getpid(),
    }
