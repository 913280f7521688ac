"""Which published server type is a measured machine?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nephoscope.core.reading.sentences import did_you_mean
from nephoscope.features.market.prices import ALIASES
from nephoscope.stats import facts
from nephoscope.store.market.records import ServerType

LABEL = "server-type"
"""Label of a run that states PROVIDER/TYPE of its machine."""
_FIRMWARE = {"Amazon EC2": "aws"}
"""Vendor in the firmware, which then has the type as its product name -> provider."""


@dataclass(frozen=True, slots=True)
class IdentifiedType:
    """place: of the imported types, None without one. stated_by: what states the type. note:
    sentence on a stated type that was not imported."""

    place: int | None = None
    stated_by: str = ""
    note: str = ""


def identify(
    labels: Mapping[str, str], fingerprint: Any, types: Sequence[ServerType]
) -> IdentifiedType:
    """Returns the type that the user, the cloud's metadata or the firmware states."""
    places = {f"{server.provider}/{server.name}".lower(): at for at, server in enumerate(types)}
    name, stated_by = _stated(labels, fingerprint)
    if not name:
        return IdentifiedType()
    place = places.get(name.lower())
    if place is None:
        return IdentifiedType(
            note=f"No imported type is '{name[:80]}' ({stated_by}){did_you_mean(name, places)}."
        )
    return IdentifiedType(place, stated_by)


def _stated(labels: Mapping[str, str], fingerprint: Any) -> tuple[str, str]:
    if LABEL in labels:
        return labels[LABEL], f"label {LABEL}"
    kind = facts.text(fingerprint, "cloud.instance_type")
    provider = facts.text(fingerprint, "cloud.provider")
    if kind and provider:
        return f"{ALIASES.get(provider.lower(), provider.lower())}/{kind}", "cloud metadata"
    vendor = _FIRMWARE.get(facts.text(fingerprint, "hypervisor.sys_vendor") or "")
    product = facts.text(fingerprint, "hypervisor.product_name")
    if vendor and product:
        return f"{vendor}/{product}", "firmware"
    return "", ""
