"""Trials with an autoscaler, made up: every time in them is planted."""

from __future__ import annotations

from dataclasses import replace

from tests.features.balance.made import BEGAN_NS, counter, record

from nephoscope.core.model import Sample
from nephoscope.features.balance.trials import BackgroundSamples, BalancedTrial

S = 1_000_000_000
SLOW_NS = 300_000_000


def step(at_s: float, machine: str, name: str) -> Sample:
    factors = {"machine": machine, "step": name}
    return Sample("steps_count", 1.0, at_ns=round(at_s * S), factors=factors)


def level(at_s: float, state: str, count: int) -> Sample:
    return Sample("instances_count", float(count), at_ns=round(at_s * S), factors={"state": state})


def decision(at_s: float, wanted: int, desired: int, reason: str = "rule") -> list[Sample]:
    at_ns = round(at_s * S)
    return [
        Sample("wanted_count", float(wanted), at_ns=at_ns),
        Sample("desired_count", float(desired), at_ns=at_ns, factors={"reason": reason}),
    ]


def visible(at_s: float, wanted: int) -> Sample:
    return Sample("visible_wanted_count", float(wanted), at_ns=round(at_s * S))


def scaler(samples: list[Sample], name: str = "rate-40", **more: object) -> BackgroundSamples:
    params = {"objective": "p99 < 200ms", "capacity_per_s": 50.0, "billing_ns": 10 * S, **more}
    made = counter(name, "autoscaler.reference", samples, **params)
    return replace(made, samples=list(made.samples))


def reacting() -> list[Sample]:
    """Demand 1, from 10 to 20 s 2. Lag 2 s, decided 1 s later, created at 13.5, booted at 15,
    warm at 16, in rotation at 16.25, served at 16.5; out of rotation at 24, removed at 25."""
    samples = [level(0, state, 1) for state in ("present", "in_rotation", "billed")]
    samples += [step(0, "m1", "created"), step(0, "m1", "in_rotation")]
    samples += [visible(2, 1), visible(12, 2), visible(13, 2), visible(22.5, 1)]
    for at_s, desired in ((3, 1), (13, 2), (23, 1)):
        samples += decision(at_s, desired, desired)
    samples += [
        level(13.5, "present", 2), level(13.5, "billed", 2), level(16.25, "in_rotation", 2),
        level(24, "present", 1), level(24, "in_rotation", 1), level(25, "billed", 1),
        step(13.5, "m2", "created"), step(15, "m2", "booted"), step(16, "m2", "ready"),
        step(16.25, "m2", "in_rotation"), step(16.5, "m2", "served"),
        step(24, "m2", "out_of_rotation"), step(25, "m2", "removed"),
    ]  # fmt: skip
    return samples


def trial(
    own: BackgroundSamples,
    *,
    number: int = 1,
    rates: tuple[int, ...] = (40, 80, 40),
    unsent: int = 0,
    silent_from_s: int = 99,
    silent_to_s: int = 99,
    errors: bool = True,
) -> BalancedTrial:
    """30 s of load: 1600 requests, 100 of them slow, 4 of them failed."""
    params = {
        "connections": 10,
        "arrivals": "constant",
        "interval_ns": S,
        "duration_ns": 30 * S,
        "step_rates_per_s": list(rates),
    }
    samples = [
        Sample("due_count", 1600.0),
        Sample("errors_count", 4.0, factors={"kind": "reset"}),
        Sample("errors_count", float(unsent), factors={"kind": "unsent"}),
        Sample("errors_count", 4.0 + unsent, factors={"kind": "any"}),
        Sample("latency_ns", 1e7, 1496 - unsent),
        Sample("latency_ns", float(SLOW_NS), 100),
        Sample("send_delay_ns", 1000.0, 1600),
    ]
    for place in range(30):
        at_ns = (place + 1) * S
        is_answered = not silent_from_s <= place < silent_to_s
        is_slow = 10 <= place < 16
        samples += [
            Sample("interval_requests_per_s", 40.0 * is_answered, at_ns=at_ns),
            Sample("interval_latency_p99_ns", SLOW_NS if is_slow else 1e7, at_ns=at_ns),
            Sample("interval_errors_count", float(errors and not is_answered), at_ns=at_ns),
        ]
    made = replace(record(params), timeline={"measure": (0, 30 * S)}, started_at=BEGAN_NS / 1e9)
    return BalancedTrial(number, "10.0.0.9", [made], [samples], {own.name: own})
