"""The programs of experiments on elasticity: their calls, and their logs as samples."""

from __future__ import annotations

import json

import pytest

from nephoscope.catalog.adapters import ADAPTERS, Output, ToolError
from nephoscope.core.errors import UsageError

LOG = "\n".join(
    json.dumps(line)
    for line in (
        {"at_ns": 10, "event": "begins", "present": 1, "in_rotation": 1, "billed": 1},
        {"at_ns": 20, "event": "metric", "value": 2.5, "rate": 50.0, "wanted": 3},
        {
            "at_ns": 30, "event": "decision", "value": 2.5, "present": 1, "ready": 1,
            "wanted": 3, "desired": 2, "reason": "maximum",
        },
        {
            "at_ns": 31, "event": "created", "instance": "m2",
            "present": 2, "in_rotation": 1, "billed": 2,
        },
        {"at_ns": 40, "event": "ended"},
    )
)  # fmt: skip


def test_the_log_of_the_reference_becomes_samples() -> None:
    samples = ADAPTERS["autoscaler.reference"].parse(Output(LOG))
    got = [(s.metric, s.value, s.at_ns, dict(s.factors)) for s in samples]
    assert ("decisions_count", 1.0, 0, {}) in got
    assert ("instances_count", 2.0, 31, {"state": "present"}) in got
    assert ("instances_count", 1.0, 31, {"state": "in_rotation"}) in got
    assert ("desired_count", 2.0, 30, {"reason": "maximum"}) in got
    assert ("visible_wanted_count", 3.0, 20, {}) in got
    assert ("steps_count", 1.0, 31, {"machine": "m2", "step": "created"}) in got


def test_a_log_that_is_cut_off_is_none() -> None:
    for text in (LOG.partition("\n")[2], LOG.rpartition("\n")[0], "{"):
        with pytest.raises(ToolError, match="log"):
            ADAPTERS["autoscaler.reference"].parse(Output(text))
    with pytest.raises(ToolError, match="HAProxy did not start"):
        ADAPTERS["autoscaler.reference"].parse(Output("", stderr="\nHAProxy did not start.\n"))


def test_machines_and_rules_are_checked_before_a_run() -> None:
    adapter = ADAPTERS["autoscaler.reference"]
    command = adapter.build_command({"machines": ["a 10.0.0.1:1 10.0.0.1:2"]}, serving=True)
    settings = json.loads(command.arguments[-1])
    assert settings["machines"] == {"a": ["10.0.0.1:1", "10.0.0.1:2"]}
    assert settings["decision_interval_s"] == 15
    # The probe fills in where it listens, which may be a port that it chose.
    assert (settings["address"], settings["port"]) == ("{address}", "{port}")
    for params in ({"machines": ["a b"]}, {"rule": "no"}, {"rule": '{"unknown": 1}'}):
        with pytest.raises(UsageError):
            adapter.build_command(params, serving=True)


def test_a_followed_autoscaler_has_its_deviations_and_its_settings() -> None:
    adapter = ADAPTERS["autoscaler.managed"]
    params = {"kind": "hpa", "name": "web", "place": "shop", "interval_ns": 500_000_000}
    command = adapter.build_command(params, serving=True)
    settings = json.loads(command.arguments[-1])
    assert settings.items() >= {"kind": "hpa", "name": "web", "interval_s": 0.5}.items()
    assert settings["flags"] == {
        "tolerance_ratio": 0.1,
        "cpu_initialisation_s": 300.0,
        "readiness_delay_s": 30.0,
        "downscale_stabilisation_s": 300.0,
    }
    # Secrets are not among what is handed on.
    assert not any("SECRET_ACCESS" in name for name in command.environment)
    deviation = json.dumps({"at_ns": 35, "event": "deviation", "text": "from 1 to 4"})
    lines = LOG.splitlines()
    samples = adapter.parse(Output("\n".join([*lines[:-1], deviation, lines[-1]])))
    got = [(s.metric, s.at_ns, dict(s.factors)) for s in samples]
    assert ("deviations_count", 35, {"text": "from 1 to 4"}) in got
