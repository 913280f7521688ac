"""`nephoscope simulate elastic`: which autoscaling rule serves a load at the lowest cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nephoscope.cli.kit import options
from nephoscope.cli.kit.command import Document, Excluded, command
from nephoscope.cli.kit.named import RUN
from nephoscope.cli.kit.options import SEEDS, Count, argument, duration, option, repeated

_REPLICATIONS = 10


@dataclass(frozen=True, slots=True)
class _SimulateElasticArguments:
    trace: Path | None = argument(options.PATH, required=False, metavar="[TRACE]")
    name: str | None = option("--run", RUN, "Stored run of `elastic` to replay, instead of TRACE.")
    objective: str | None = option("--objective", "'pN < TIME'", "Objective of response time.")
    service_s: float | None = option(
        "--service-time", duration("1 us", "1 h"), "Mean time that a request takes an instance."
    )
    rules: tuple[str, ...] = repeated(
        "--rule", "RULE", "Rule and settings, e.g. cpu=0.5|0.7,cooldown_in=5min."
    )
    values: Mapping[str, str] = options.set_option("Set boot, warm_up, lag, interval, ….")
    test: Path | None = option("--test-trace", options.PATH, "Trace of another day to back-test.")
    replications: int = option(
        "--replications", Count(1, 1000), "Number of replications.", default=_REPLICATIONS
    )
    seed: int = option("--seed", SEEDS, "Random seed.", default=0)
    to: Path | None = options.REPORT_FILE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("elastic_simulation", ".features.scaling.records:ScalingAnalysis"),
    requests=Excluded("simulates many settings, which takes minutes"),
    is_work=True,
    examples=(
        "day.csv --objective 'p95 < 200ms' --service-time 20ms --rule cpu=0.6",
        "day.csv --objective 'p95 < 200ms' --service-time 20ms --test-trace other.csv",
    ),
)
def elastic(args: _SimulateElasticArguments) -> int:
    """Find the autoscaling rule that serves a load most cheaply.

    TRACE is a CSV file with the columns time_s and rate (requests/s).
    """
    from nephoscope.cli.kit.section_output import present
    from nephoscope.features.scaling import request, result, traces
    from nephoscope.features.scaling.section import scaling_section

    made = request.made(
        request.Stated(args.trace, args.name, args.objective, args.service_s, args.rules),
        args.values,
        args.store,
    )
    wanted = result.SearchSettings(made.objective, made.candidates, args.replications, args.seed)
    test = None if args.test is None else traces.read(args.test)
    analysis = result.analyse(made.service, wanted, made.trace, test)
    page = scaling_section(analysis)
    return present(analysis, page, as_json=args.as_json, to=args.to, source=made.trace.name)
