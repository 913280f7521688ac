"""`nephoscope simulate`: runs a simulation as a plan, so that its results are those of a run."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nephoscope.cli.kit import measuring, options, output
from nephoscope.cli.kit.options import SEEDS, Count, Function, flag, option

if TYPE_CHECKING:
    from nephoscope.catalog.scenarios import Scenario, SimulationKind
    from nephoscope.measure.plans import Plan

REPLICATIONS = 10
"""Enough for an interval by Student's t, or of a median with 95 % or more."""

_SCENARIO = (
    "SCENARIO is a YAML file or the name of a built-in scenario. "
    "Without SCENARIO, lists the built-in scenarios."
)


@click.group(cls=options.InOrder)
def simulate() -> None:
    """Simulate sites and users, CPU schedulers, instance selection."""


def _simulation(command: Function) -> Function:
    """Adds the arguments and options of every simulation, and what its scenario may be."""
    parameters: tuple[Callable[[Function], Function], ...] = (
        click.argument("scenario", required=False, metavar="[SCENARIO]"),
        options.set_option("Override a value of the scenario.", "PATH=VALUE"),
        option(
            "--replications",
            Count(1, 100_000),
            "Number of replications, each with its own random seed.",
            default=REPLICATIONS,
        ),
        option("--seed", SEEDS, "Random seed of the run [default: the scenario's, else random]."),
        options.LABELS,
        options.STORE,
        options.JSON,
        options.FRESH,
    )
    command = options.add_options(command, parameters)
    command.__doc__ = f"{command.__doc__}\n\n{_SCENARIO}"
    return command


@simulate.command()
@_simulation
@flag(
    "--place",
    "Choose sites instead: the cheapest that serve the scenario's share of requests in time.",
)
@option("--latency", "RUN", "Run whose measured round-trip times (net.rtt) to use as latencies.")
def geo(scenario: str | None, place: bool, latency: str | None, **given: Any) -> int:
    """Simulate response times and cost of sites for users worldwide."""
    from nephoscope.catalog import scenarios

    over: dict[str, Any] = {}
    if latency is not None:
        from nephoscope.features.simulation import measured_latency

        over["latency"] = measured_latency.latency(latency, given["store"])
        if scenario is not None:
            values = scenarios.read(scenarios.GEO, scenario, given["values"])
            for sentence in measured_latency.unmeasured(values, over["latency"], latency):
                output.log(f"! {sentence}")
    kind = scenarios.PLACE if place else scenarios.GEO
    return _simulate(kind, scenario, over=over, **given)


@simulate.command()
@_simulation
def scheduler(scenario: str | None, **given: Any) -> int:
    """Simulate virtual machines that share CPUs under a scheduler."""
    from nephoscope.catalog import scenarios

    return _simulate(scenarios.SCHEDULER, scenario, **given)


@simulate.command()
@_simulation
def selection(scenario: str | None, **given: Any) -> int:
    """Simulate the savings of relaunching until an instance is fast."""
    from nephoscope.catalog import scenarios

    return _simulate(scenarios.SELECTION, scenario, **given)


def _simulate(
    kind: SimulationKind,
    scenario: str | None,
    *,
    values: Mapping[str, str],
    replications: int,
    seed: int | None,
    store: Path | None,
    as_json: bool,
    fresh: bool,
    over: Mapping[str, Any] | None = None,
) -> int:
    """Checks the scenario and runs it as a plan; returns the exit code."""
    if scenario is None:
        return _list(kind, as_json=as_json)
    from nephoscope.catalog import scenarios
    from nephoscope.store import Store

    loaded = scenarios.load(kind, scenario, values, over)
    if kind is scenarios.PLACE:
        output.log(_target_share(loaded.values))
    own_seed = loaded.values.get("seed") if seed is None else seed
    plan = _plan(
        kind.benchmark, loaded, replications, own_seed if isinstance(own_seed, int) else None
    )
    run = measuring.executed(plan, Store(store), fresh=fresh)
    return measuring.present(run, as_json=as_json, full=True)


def _plan(benchmark: str, scenario: Scenario, replications: int, seed: int | None) -> Plan:
    """A plan with a round for each replication, whose randomness follows from seed and round."""
    from nephoscope import catalog
    from nephoscope.measure.plans.context import nowhere
    from nephoscope.measure.plans.files.load import from_values
    from nephoscope.measure.targets.kinds.record import as_name

    entry = {"benchmark": benchmark, "params": {"scenario": scenario.text}, "timeout": 600.0}
    # No warm-up, and no interval is too wide: how many replications there are is the user's to say.
    values: dict[str, Any] = {
        "name": as_name(f"{benchmark.replace('.', '-')}-{scenario.name}"),
        "targets": [{"name": "model", "kind": "sim"}],
        "benchmarks": [entry],
        "repeat": {"min": replications, "max": replications, "relative_half_width": 0.99},
        "warmup": 0,
        "observe": {"gap_meter": False},
    }
    if seed is not None:
        values["seed"] = seed
    return from_values(values, catalog.load(), nowhere)


def _list(kind: SimulationKind, *, as_json: bool) -> int:
    from nephoscope.catalog import scenarios

    known = scenarios.builtin(kind)
    if as_json:
        output.document({"scenarios": known})
        return 0
    width = max((len(name) for name in known), default=0)
    for name, values in known.items():
        output.say(
            textwrap.fill(
                f"{name:<{width}}  {str(values.get('note', '')).split('. ')[0].rstrip('.')}",
                output.width(),
                subsequent_indent=" " * (width + 2),
            )
        )
    output.say(f"\nRun `nephoscope simulate {kind.word} NAME`, or pass a scenario file.")
    return 0


def _target_share(values: Mapping[str, Any]) -> str:
    """Returns what the choice of sites has to reach."""
    objective = values.get("objective_ms")
    time = "the objective" if objective is None else f"{objective:g} ms"
    share = (values.get("place") or {}).get("within_ratio")
    if share is None:
        return (
            f"Target: the largest share of requests within {time} "
            "(no place.within_ratio is set; with it, the cheapest sites that reach it)."
        )
    return f"Target: {100 * share:g} % of requests within {time}, at the lowest cost."
