"""Places at which machines are rented: from words of a command line, and what they are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from pydantic import ValidationError

from nephoscope.core.errors import UsageError
from nephoscope.measure.runs.rented_network import network_of
from nephoscope.measure.targets.kinds.record import as_name
from nephoscope.measure.targets.kinds.rented import RentedRecord

KEYS = (
    "name",
    "type",
    "image",
    "market",
    "endpoint",
    "profile",
    "network",
    "login_from",
    "per_hour",
    "per_gib_out",
    "per_gib_zones",
)
"""Keys of a rented target of a plan that a place may state for itself."""

_OF_CLOUD = ("endpoint", "profile")
FORM = "[PROVIDER:]REGION[/ZONE][,KEY=VALUE...]"


def place_of(text: str, shared: Mapping[str, Any]) -> RentedRecord:
    """Returns the machine of `FORM`. shared: keys of a rented target for what it does not state;
    endpoint and profile are those of the shared provider alone. Raises UsageError."""
    head, *rest = text.split(",")
    own = dict(_pair(part, text) for part in rest)
    provider, colon, where = head.rpartition(":")
    region, slash, zone = where.partition("/")
    if not region or (colon and not provider) or (slash and not zone):
        raise UsageError(f"'{text}' names no place.", f"Write {FORM}.")
    values = dict(shared)
    if provider and provider != shared["provider"]:
        values = {key: value for key, value in values.items() if key not in _OF_CLOUD}
        values["provider"] = provider
    values |= {"region": region, **({"zone": zone} if zone else {}), **own}
    for key in ("type", "image"):
        if not values.get(key):
            raise UsageError(
                f"The place '{text}' has no {key}.", f"Give --{key}, or add `,{key}=…` to it."
            )
    values.setdefault("name", as_name("-".join(filter(None, (provider, zone or region)))))
    try:
        return RentedRecord.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"][:1]))
        raise UsageError(
            f"The place '{text}' cannot be read: {key}: {first['msg']}.", f"Write {FORM}."
        ) from None


def _pair(part: str, text: str) -> tuple[str, str]:
    key, equals, value = part.partition("=")
    if not equals or key not in KEYS or not value:
        raise UsageError(
            f"The place '{text}' has '{part}', which states nothing of it.",
            f"Write KEY=VALUE; the keys are {', '.join(KEYS)}.",
        )
    return key, value


def check_distinct(machines: Sequence[RentedRecord]) -> None:
    """Raises UsageError for a place that stands there twice, and for two of one name."""
    for first, second in combinations(machines, 2):
        if _where(first) == _where(second):
            zone = "" if first.zone[0] == "any" else f"/{first.zone[0]}"
            raise UsageError(
                f"{first.region[0]}{zone} of {first.provider[0]} is named twice.",
                "Name each place once; --repetitions measures it more often.",
            )
        if first.name == second.name:
            raise UsageError(
                f"Two places are called {first.name}.", "Add `,name=…` to one of them."
            )


def _where(machine: RentedRecord) -> tuple[str, ...]:
    return (*network_of(machine), machine.network, machine.zone[0])


def labels_of(machines: Iterable[RentedRecord]) -> dict[str, str]:
    """Returns machine -> what people call its place: the zone, else the region; with the provider
    where there are several clouds, and the machine's name where two would be called alike."""
    machines = list(machines)
    clouds = {(each.provider[0], each.endpoint, each.profile) for each in machines}
    labels = {}
    for machine in machines:
        zone = machine.zone[0]
        label = machine.region[0] if zone == "any" else zone
        labels[machine.name] = f"{machine.provider[0]}:{label}" if len(clouds) > 1 else label
    places = {each.name: _where(each) for each in machines}
    return {
        name: name
        if any(labels[same] == label and places[same] != places[name] for same in labels)
        else label
        for name, label in labels.items()
    }
