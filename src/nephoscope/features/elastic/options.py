"""The options of `elastic`: the load, the lab with its autoscaler, and a service of others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from nephoscope.cli.kit import options
from nephoscope.cli.kit.named import TARGET
from nephoscope.cli.kit.options import (
    Count,
    PlannedRunOptions,
    duration,
    flag,
    option,
    repeated,
)
from nephoscope.features.load.options import GENERATORS, RATE
from nephoscope.features.sla.options import CONTRACT_NAME

_INTERVAL_NS = duration("50 ms", "1 h", unit="ns")
_DELAY_NS, _COOLDOWN_S = duration("0 s", "1 h", unit="ns"), duration("0 s", "1 h")
PROFILES = ("step", "ramp", "sine", "day", "flash")


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Options of the load and its objective."""

    profile: str = option(
        "--profile", click.Choice(PROFILES), "Course of the rate over a trial.", default="step"
    )
    low: float = option("--low", RATE, "Lowest rate of the profile.", default="20")
    high: float = option("--high", RATE, "Highest rate of the profile.", default="100")
    trace: Path | None = option(
        "--trace",
        options.PATH,
        "CSV file with the columns time_s and rate_per_s, instead of a profile.",
    )
    duration_s: float | None = option(
        "-d --duration",
        duration("5 s", "24 h"),
        "Time of one trial [default: 1min; of a trace, its own].",
    )
    poisson: bool = flag("--poisson", "Poisson arrivals instead of evenly spaced requests.")
    connections: int = option(
        "-c --connections", Count(1, 100_000), "Number of connections.", default=200
    )
    objective: str = option(
        "--objective",
        "'pN < TIME'",
        "Objective of response time (p50 or p99).",
        default="p99 < 200ms",
    )
    capacity: float | None = option(
        "--capacity",
        RATE,
        "Requests per second of one instance within the objective [default: measured in the lab].",
    )


@dataclass(frozen=True, slots=True)
class LabOptions:
    """Options of the lab, its autoscaler and its service."""

    rules: tuple[str, ...] = repeated(
        "--rule",
        "RULE",
        "Rule of the lab's autoscaler, as of `simulate elastic`, e.g. rate=40, cpu=0.6, "
        "response-time=50ms,cooldown_in=30s, queue=1..4, predictive=40, 'schedule=0s:1;60s:3' or "
        "control:target=50ms [default: rate=40].",
    )
    minimum: int = option("--min", Count(1, 32), "Minimum number of instances.", default=1)
    maximum: int = option("--max", Count(1, 32), "Maximum number of instances.", default=5)
    step: int = option("--step", Count(1, 32), "Instances of a step.", default=1)
    metric_interval_ns: float = option(
        "--metric-interval",
        _INTERVAL_NS,
        "Interval over which a value of the metric is averaged.",
        default="1s",
    )
    metric_lag_ns: float = option(
        "--metric-lag",
        _DELAY_NS,
        "Age of a value of the metric when the rule sees it.",
        default="0s",
    )
    decision_interval_ns: float = option(
        "--decision-interval",
        _INTERVAL_NS,
        "Time between decisions.",
        default="5s",
    )
    boot_ns: float = option(
        "--boot",
        _DELAY_NS,
        "Mean time from the creation of an instance to the start of its service.",
        default="2s",
    )
    warm_up_ns: float = option(
        "--warm-up",
        _DELAY_NS,
        "Mean time from there until it is ready.",
        default="1s",
    )
    delay_cv: float = option(
        "--delay-cv",
        options.ratio(0, 10),
        "Coefficient of variation of boot and warm-up times.",
        default="0",
    )
    cooldown_out_s: float = option(
        "--cooldown-out", _COOLDOWN_S, "Time between scale-outs.", default="0s"
    )
    cooldown_in_s: float = option(
        "--cooldown-in",
        _COOLDOWN_S,
        "Time from any change to a scale-in.",
        default="0s",
    )
    history_s: float = option(
        "--history",
        duration("1 s", "1 h"),
        "Time whose rates a predictive rule continues.",
        default="10s",
    )
    service_time_ns: float = option(
        "--service-time",
        duration("10 us", "10 s", unit="ns"),
        "Time that one request takes an instance, which serves one at a time.",
        default="20ms",
    )
    exponential: bool = flag("--exponential", "Exponential service times instead of equal ones.")
    service_cpus: float = option(
        "--service-cpus",
        options.FiniteRange(0, 64),
        "CPUs of an instance, whose requests then use CPU time; 0: they only wait.",
        default=0.0,
    )


@dataclass(frozen=True, slots=True)
class ElasticArguments:
    """Arguments of the command."""

    load: LoadOptions = options.group(LoadOptions)
    lab: LabOptions = options.group(LabOptions)
    url: str = option(
        "--url",
        "URL",
        "Service that another autoscaler scales, instead of a lab; alone, its growth is measured.",
        default="",
    )
    observe: str = option(
        "--observe",
        "COMMAND",
        "Shell command that prints the number of instances of --url.",
        default="",
        is_local=True,
    )
    autoscaler: str = option(
        "--autoscaler",
        "NAME",
        "Autoscaler of --url, followed by its API: hpa:NAMESPACE/NAME[@CONTEXT], ec2:GROUP@REGION.",
        default="",
    )
    observe_interval_ns: float = option(
        "--observe-interval",
        _INTERVAL_NS,
        "Time between calls of that command, or between values of the autoscaler's metric.",
        default="1s",
    )
    target: str = option("--target", TARGET, "Host of the generator of --url.", default="local")
    generators: str = GENERATORS
    authorised_hosts: tuple[str, ...] = options.AUTHORISED_HOSTS
    billing_ns: float = option(
        "--billing",
        duration("1 ms", "24 h", unit="ns"),
        "Unit of time in which an instance is paid.",
        default="1s",
    )
    attack: float | None = option(
        "--attack",
        RATE,
        "Requests per second that nobody needs, in the second half: what they cost.",
    )
    contract: str = option(
        "--contract",
        CONTRACT_NAME,
        "Built-in contract or file, whose credit for the violations is stated.",
        default="",
    )
    bill: str | None = option("--bill", "AMOUNT", "Bill of a period, with --contract.")
    rounds: int | None = option(
        "--rounds",
        Count(1, 1000),
        "Trials of each rule, or ramps of --url alone [default: 3, or 20 ramps].",
    )
    budget: float | None = option(
        "--budget",
        duration("20 s", "24 h"),
        "Time for measuring the capacity of one instance, without --capacity [default: 3min].",
    )
    run: PlannedRunOptions = options.group(PlannedRunOptions)
