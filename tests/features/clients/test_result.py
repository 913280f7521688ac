"""A client is the bottleneck where it had no CPU left, and nowhere else; findings state it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nephoscope.features.clients.findings import RULES
from nephoscope.features.clients.result import ClientsAndServers, EndsOfResult
from nephoscope.stats.target_evidence import TargetEvidence, TargetTrials

ELSEWHERE = EndsOfResult("ab", "vm1", "gen", "vm1", 12, 0.97, 1.0, True)


def findings(line: EndsOfResult) -> dict[str, str]:
    case = TargetEvidence(line.target, {}, (), TargetTrials(), (ClientsAndServers((line,)),))
    return {found.id: found.sentence for rule in RULES for found in rule(case)}  # type: ignore[union-attr]


def test_a_client_without_cpu_left_is_named() -> None:
    found = findings(ELSEWHERE)
    assert set(found) == {"client_bound"}
    assert (
        "The client of ab on gen was the bottleneck: it used 0.970 of the 1.00"
        in found["client_bound"]
    )


@pytest.mark.parametrize(
    "change",
    [
        {"client_cpus": 0.5},
        {"client_cpus": None},
        {"usable_cpus": None},
        {"is_rate": False},
        {"target": "gen", "server": "vm1"},
    ],
)
def test_a_client_with_cpu_left_is_no_bottleneck(change: dict[str, object]) -> None:
    assert findings(replace(ELSEWHERE, **change)) == {}  # type: ignore[arg-type]


def test_client_and_server_on_one_machine_are_stated() -> None:
    found = findings(replace(ELSEWHERE, client="vm1"))
    assert set(found) == {"client_beside_server"}
    assert "the figures are of the machine as a whole" in found["client_beside_server"]
