"""`nephoscope simulate`: the same road as a measurement, with a simulation at its beginning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope.commands import measuring, options, output

if TYPE_CHECKING:
    from nephoscope.scenarios import Kind

REPLICATIONS = 10
"""Enough for an interval by Student's t, or of a median with 95 % or more."""


def geo(scenario: str | None, *, place: bool, latency: str | None, **given: Any) -> int:
    """Where sites stand and what their users feel; with `place`, where sites should stand.

    latency: a run whose round trips are the scenario's latencies.
    """
    from nephoscope import scenarios

    over: dict[str, Any] = {}
    if latency is not None:
        from nephoscope.simulation import measured_latency

        over["latency"] = measured_latency.latency(latency, given["store"])
        if scenario is not None:
            values = scenarios.read(scenarios.GEO, scenario, options.sets(given["sets"]))
            for told in measured_latency.unmeasured(values, over["latency"], latency):
                output.log(f"! {told}")
    kind = scenarios.PLACE if place else scenarios.GEO
    return _simulate(kind, scenario, over=over, **given)


def scheduler(scenario: str | None, **given: Any) -> int:
    """How a scheduler shares processors among virtual machines."""
    from nephoscope import scenarios

    return _simulate(scenarios.SCHEDULER, scenario, **given)


def selection(scenario: str | None, **given: Any) -> int:
    """What choosing among unequal instances saves."""
    from nephoscope import scenarios

    return _simulate(scenarios.SELECTION, scenario, **given)


def _simulate(
    kind: Kind,
    scenario: str | None,
    *,
    sets: Sequence[str],
    replications: int,
    seed: int | None,
    store: Path | None,
    as_json: bool,
    fresh: bool,
    over: Mapping[str, Any] | None = None,
) -> int:
    """Checks the scenario, then sends it down the road of every plan; returns the exit code."""
    values = options.sets(sets)
    if scenario is None:
        return _list(kind, as_json=as_json)
    from nephoscope import scenarios
    from nephoscope.simulation import plan as simulation_plan

    found = scenarios.load(kind, scenario, values, over)
    own_seed = found.values.get("seed") if seed is None else seed
    plan = simulation_plan.simulation(
        _name(kind.benchmark, found.name),
        kind.benchmark,
        {"scenario": found.text},
        replications=replications,
        seed=own_seed if isinstance(own_seed, int) else None,
    )
    return measuring.measure(plan, store=store, as_json=as_json, fresh=fresh)


def _name(benchmark: str, scenario: str) -> str:
    """The plan's name, which is part of the run's id: sim-geo-facebook-1."""
    from nephoscope.targets.kinds.record import as_name

    return as_name(f"{benchmark.replace('.', '-')}-{scenario}")


def _list(kind: Kind, *, as_json: bool) -> int:
    """Prints the built-in scenarios of a kind; returns 0."""
    from nephoscope import scenarios

    known = scenarios.builtin(kind)
    if as_json:
        output.document({"scenarios": known})
        return 0
    width = max((len(name) for name in known), default=0)
    for name, values in known.items():
        output.say(f"{name:<{width}}  {_first_sentence(values, output.width() - width - 2)}")
    output.say(f"\nRun `nephoscope simulate {kind.word} NAME`, or pass a scenario file.")
    return 0


def _first_sentence(values: Mapping[str, Any], width: int) -> str:
    sentence = str(values.get("note", "")).split(". ")[0].rstrip(".")
    return sentence if len(sentence) <= width else sentence[: width - 1].rstrip() + "…"
