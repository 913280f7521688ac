"""Finds what differs between the environments of two measurements: machine, versions, settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nephoscope.core import units
from nephoscope.core.model import TrialRecord
from nephoscope.core.naming import level_name
from nephoscope.core.reading.printable import printable
from nephoscope.features.machine import fact_rows
from nephoscope.stats import facts
from nephoscope.store import StoredRun

VERSIONS: Mapping[str, str] = {"nephoscope": "nephoscope", "probe": "nephoscope-probe"}
_MAX_VALUES = 3
"""Values of one parameter that are named."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact of machine, version or parameter that differs. a, b: its text; 'unknown' if hidden."""

    what: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class SideEnvironment:
    """What is known of one side. fingerprint: empty where none was taken."""

    fingerprint: Mapping[str, Any]
    versions: Mapping[str, str]
    parameters: Mapping[str, str]


def environment_of(
    run: StoredRun, target: str, set_apart: Mapping[str, frozenset[str]]
) -> SideEnvironment:
    """Returns the environment of a target in a run.

    set_apart: benchmark -> factors by which two merged plans tell their sides apart, which are
    parameters of each side.
    """
    known = run.manifest.fingerprints.get(target)
    versions = {title: str(getattr(run.manifest, key) or "") for key, title in VERSIONS.items()}
    records = (record for record in run.records() if record.key.target == target)
    return SideEnvironment(
        known if isinstance(known, Mapping) else {}, versions, _parameters(records, set_apart)
    )


def differences_between(a: SideEnvironment, b: SideEnvironment) -> tuple[Difference, ...]:
    """Returns what differs, the machine's facts first; nothing on a fact that neither side has."""
    sides = [
        _facts(environment) | dict(environment.versions) | dict(environment.parameters)
        for environment in (a, b)
    ]
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


def _parameters(
    records: Iterable[TrialRecord], set_apart: Mapping[str, frozenset[str]]
) -> dict[str, str]:
    """The parameters of each benchmark with all values that they had, apart from its factors."""
    values: dict[str, dict[str, None]] = {}
    for record in records:
        own = set_apart.get(record.benchmark, frozenset())
        for name, value in record.params.items():
            if name not in record.factors or name in own:
                text = printable(level_name(value))
                values.setdefault(f"{record.benchmark} {name}", {})[text] = None
    return {
        name: ", ".join([*list(texts)[:_MAX_VALUES], *(["…"] if len(texts) > _MAX_VALUES else [])])
        for name, texts in values.items()
    }
