"""`nephoscope simulate`: runs a simulation as a plan, so that its results are those of a run."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope.cli.kit import measuring, options, output
from nephoscope.cli.kit.command import Document, Excluded, command, group
from nephoscope.cli.kit.documents import RESULT, Row
from nephoscope.cli.kit.named import RUN, SCENARIO
from nephoscope.cli.kit.options import SEEDS, Count, argument, flag, option

if TYPE_CHECKING:
    from nephoscope.catalog.scenarios import Scenario, SimulationKind
    from nephoscope.measure.plans import Plan

REPLICATIONS = 10
"""Enough for an interval by Student's t, or of a median with 95 % or more."""

_SCENARIO = (
    "SCENARIO is a YAML file or the name of a built-in scenario. "
    "Without SCENARIO, lists the built-in scenarios."
)


@dataclass(frozen=True, slots=True)
class Scenarios:
    """Built-in scenarios of a simulation by name."""

    scenarios: Row


@group()
def simulate() -> None:
    """Simulate sites and users, CPU schedulers, selections, autoscaling."""


@dataclass(frozen=True, slots=True)
class SimulationArguments:
    """Arguments of every simulation."""

    scenario: str | None = argument(SCENARIO, required=False, metavar="[SCENARIO]")
    values: Mapping[str, str] = options.set_option(
        "Override a value of the scenario.", "PATH=VALUE"
    )
    replications: int = option(
        "--replications",
        Count(1, 100_000),
        "Number of replications, each with its own random seed.",
        default=REPLICATIONS,
    )
    seed: int | None = option(
        "--seed", SEEDS, "Random seed of the run [default: the scenario's, else random]."
    )
    labels: Mapping[str, str] = options.LABELS
    store: Path | None = options.STORE
    as_json: bool = options.JSON
    fresh: bool = options.FRESH


def _with_scenario(function: Callable[..., int]) -> Callable[..., int]:
    """Adds what the scenario may be to the help."""
    function.__doc__ = f"{function.__doc__}\n\n{_SCENARIO}"
    return function


@dataclass(frozen=True, slots=True)
class _SimulateGeoArguments:
    common: SimulationArguments = options.group(SimulationArguments)
    place: bool = flag(
        "--place",
        "Choose sites instead: the cheapest that serve the scenario's share of requests in time.",
    )
    latency: str | None = option(
        "--latency", RUN, "Run whose measured round-trip times (net.rtt) to use as latencies."
    )


@command(
    simulate,
    prints={"": RESULT, "no SCENARIO": Document("scenarios", Scenarios)},
    requests=Excluded("stores a run; its stored runs have the document `result`"),
    examples=(
        "",
        "facebook-1 --replications 20 --seed 7",
    ),
)
@_with_scenario
def geo(args: _SimulateGeoArguments) -> int:
    """Simulate response times and cost of sites for users worldwide."""
    from nephoscope.catalog import scenarios

    common, over = args.common, dict[str, Any]()
    if args.latency is not None:
        from nephoscope.features.simulation import measured_latency

        over["latency"] = measured_latency.latency(args.latency, common.store)
        if common.scenario is not None:
            values = scenarios.read(scenarios.GEO, common.scenario, common.values)
            for sentence in measured_latency.unmeasured(values, over["latency"], args.latency):
                output.log(f"! {sentence}")
    kind = scenarios.PLACE if args.place else scenarios.GEO
    return _simulate(kind, common, over)


@command(
    simulate,
    prints={"": RESULT, "no SCENARIO": Document("scenarios", Scenarios)},
    requests=Excluded("stores a run; its stored runs have the document `result`"),
    examples=(
        "",
        "linux-reservation-30-40",
    ),
)
@_with_scenario
def scheduler(args: SimulationArguments) -> int:
    """Simulate virtual machines that share CPUs under a scheduler."""
    from nephoscope.catalog import scenarios

    return _simulate(scenarios.SCHEDULER, args)


@command(
    simulate,
    prints={"": RESULT, "no SCENARIO": Document("scenarios", Scenarios)},
    requests=Excluded("stores a run; its stored runs have the document `result`"),
    examples=(
        "",
        "zhuang-2012 --set hours=24",
    ),
)
@_with_scenario
def selection(args: SimulationArguments) -> int:
    """Simulate the savings of relaunching until an instance is fast."""
    from nephoscope.catalog import scenarios

    return _simulate(scenarios.SELECTION, args)


def _simulate(
    kind: SimulationKind, args: SimulationArguments, over: Mapping[str, Any] | None = None
) -> int:
    """Checks the scenario and runs it as a plan; returns the exit code."""
    if args.scenario is None:
        return _list(kind, as_json=args.as_json)
    from nephoscope.catalog import scenarios
    from nephoscope.store import Store

    loaded = scenarios.load(kind, args.scenario, args.values, over)
    if kind is scenarios.PLACE:
        output.log(_target_share(loaded.values))
    seed = loaded.values.get("seed") if args.seed is None else args.seed
    plan = _plan(kind.benchmark, loaded, args.replications, seed if isinstance(seed, int) else None)
    run = measuring.executed(plan, Store(args.store), fresh=args.fresh)
    return measuring.present(run, as_json=args.as_json, full=True)


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
        output.document(Scenarios(known))
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
