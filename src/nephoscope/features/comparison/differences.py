"""Finds what differs between the environments of two measurements: machine, versions, settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nephoscope.core import units
from nephoscope.features.machine import fact_rows
from nephoscope.results import run_settings
from nephoscope.stats import facts
from nephoscope.store import StoredRun


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact of machine, version or parameter that differs. a, b: its text; 'unknown' if hidden.

    side: name of B where several sides are compared with A.
    """

    what: str
    a: str
    b: str
    side: str = ""


@dataclass(frozen=True, slots=True)
class SideEnvironment:
    """What is known of one side. fingerprint: empty where none was taken."""

    fingerprint: Mapping[str, Any]
    settings: Mapping[str, str]


def environment_of(
    run: StoredRun, target: str, set_apart: Mapping[str, frozenset[str]]
) -> SideEnvironment:
    """Returns the environment of a target in a run.

    set_apart: benchmark -> factors by which two merged plans tell their sides apart, which are
    parameters of each side.
    """
    known = run.manifest.fingerprints.get(target)
    versions = run_settings.versions_of(run.manifest, target)
    parameters = run_settings.parameters_of(run, target, set_apart)
    return SideEnvironment(known if isinstance(known, Mapping) else {}, versions | parameters)


def differences_between(a: SideEnvironment, b: SideEnvironment) -> tuple[Difference, ...]:
    """Returns what differs, the machine's facts first; nothing on a fact that neither side has."""
    sides = [_facts(item) | dict(item.settings) for item in (a, b)]
    names = dict.fromkeys([*sides[0], *sides[1]])
    rows = ((name, *(side.get(name) or "unknown" for side in sides)) for name in names)
    return tuple(Difference(*row) for row in rows if row[1] != row[2])


def _facts(side: SideEnvironment) -> dict[str, str]:
    known = side.fingerprint
    if not known:
        return {}
    memory = facts.number(known, "memory.total_bytes")
    rows = dict(fact_rows.lasting_rows_of(known))
    del rows["Mitigations"]  # a count of what is named one by one below
    if memory is not None:
        rows["Memory"] = units.format_value(memory, "bytes")
    return rows | {
        f"Mitigation of {name}": state for name, state in fact_rows.mitigations_of(known)
    }
