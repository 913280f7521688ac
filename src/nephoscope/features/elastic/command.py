"""`nephoscope elastic`: how closely an autoscaler follows the load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope.cli.kit import measuring, options, output
from nephoscope.cli.kit.command import MEASURES, command
from nephoscope.cli.kit.documents import PREVIEW, RESULT
from nephoscope.cli.kit.named import TARGET
from nephoscope.cli.kit.options import Count, duration, flag, option, repeated
from nephoscope.core.errors import UsageError
from nephoscope.features.load.options import RATE

if TYPE_CHECKING:
    from nephoscope.features.elastic.plan import ElasticRequest
    from nephoscope.features.elastic.profiles import LoadProfile
    from nephoscope.store import Store

_PROFILES = ("step", "ramp", "sine", "day", "flash")
_DURATION_S = 60.0
_BUDGET_S = 180.0
_LAB_RULE = "rate=40"


@dataclass(frozen=True, slots=True)
class _LoadOptions:
    profile: str = option(
        "--profile", click.Choice(_PROFILES), "Course of the rate over a trial.", default="step"
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
class _LabOptions:
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
        duration("50 ms", "1 h", unit="ns"),
        "Interval over which a value of the metric is averaged.",
        default="1s",
    )
    metric_lag_ns: float = option(
        "--metric-lag",
        duration("0 s", "1 h", unit="ns"),
        "Age of a value of the metric when the rule sees it.",
        default="0s",
    )
    decision_interval_ns: float = option(
        "--decision-interval",
        duration("50 ms", "1 h", unit="ns"),
        "Time between decisions.",
        default="5s",
    )
    boot_ns: float = option(
        "--boot",
        duration("0 s", "1 h", unit="ns"),
        "Mean time from the creation of an instance to the start of its service.",
        default="2s",
    )
    warm_up_ns: float = option(
        "--warm-up",
        duration("0 s", "1 h", unit="ns"),
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
        "--cooldown-out", duration("0 s", "1 h"), "Time between scale-outs.", default="0s"
    )
    cooldown_in_s: float = option(
        "--cooldown-in",
        duration("0 s", "1 h"),
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
class _ElasticArguments:
    load: _LoadOptions = options.group(_LoadOptions)
    lab: _LabOptions = options.group(_LabOptions)
    url: str = option(
        "--url", "URL", "Service that another autoscaler scales, instead of a lab.", default=""
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
        duration("50 ms", "1 h", unit="ns"),
        "Time between calls of that command, or between values of the autoscaler's metric.",
        default="1s",
    )
    target: str = option("--target", TARGET, "Host of the generator of --url.", default="local")
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
    rounds: int = option("--rounds", Count(1, 1000), "Trials of each rule.", default=3)
    budget: float | None = option(
        "--budget",
        duration("20 s", "24 h"),
        "Time for measuring the capacity of one instance, without --capacity [default: 3min].",
    )
    seed: int | None = options.SEED
    labels: Mapping[str, str] = options.LABELS
    store: Path | None = options.STORE
    as_json: bool = options.JSON
    fresh: bool = options.FRESH
    dry_run: bool = options.DRY_RUN


@command(
    prints={"": RESULT, "--dry-run": PREVIEW},
    requests=MEASURES,
    examples=(
        "--capacity 45 --rule rate=35 --rule queue=1..4",
        "--profile day --duration 10min --rule response-time=50ms --boot 10s",
        "--url http://127.0.0.1:8080/ --capacity 200 --high 900 --observe ./count-replicas.sh",
    ),
)
def elastic(args: _ElasticArguments) -> int:
    """Measure how closely an autoscaler follows the load.

    Sends an open loop of varying rate to a service, and compares the number of instances with the
    number that the load needs within the objective. Makes a lab with an autoscaler of its own,
    whose rules and delays are options; with --url, any other one is observed by a command, or is
    followed by its API.
    """
    from nephoscope.features.elastic import terminal
    from nephoscope.features.elastic.plan import plan_elastic
    from nephoscope.store import Store

    request = _request(args)
    plan_elastic(request)  # what it refuses is refused before anything is measured
    store = Store(args.store)
    if args.load.capacity is None and not args.dry_run:
        request = _with_capacity(request, store, args.budget or _BUDGET_S)
    return measuring.run_or_preview(
        plan_elastic(request),
        store,
        lab_for="" if args.url else "nephoscope elastic",
        text_of=terminal.text,
        as_json=args.as_json,
        fresh=args.fresh,
        dry_run=args.dry_run,
    )


def _profile(load: _LoadOptions) -> LoadProfile:
    from nephoscope.features.elastic.profiles import profile_of, profile_of_file

    if load.trace is not None:
        return profile_of_file(load.trace, load.duration_s)
    return profile_of(load.profile, load.low, load.high, load.duration_s or _DURATION_S)


def _request(args: _ElasticArguments) -> ElasticRequest:
    from nephoscope.features.elastic.autoscalers.names import parse as parse_name
    from nephoscope.features.elastic.plan import ElasticRequest, LabService, MachineTimes
    from nephoscope.features.elastic.rule_texts import RuleLimits
    from nephoscope.features.load.objective import LatencyObjective
    from nephoscope.features.load.options import with_ascii_host
    from nephoscope.measure.targets.kinds import parse

    load, lab = args.load, args.lab
    _check(args)
    url = args.url if "://" in args.url or not args.url else f"http://{args.url}"
    return ElasticRequest(
        profile=_profile(load),
        objective=LatencyObjective.of(load.objective),
        objective_text=load.objective,
        capacity_per_s=load.capacity or 1.0,
        rule_texts=tuple(dict.fromkeys(lab.rules)) or (_LAB_RULE,),
        limits=RuleLimits(
            minimum=lab.minimum,
            maximum=lab.maximum,
            step=lab.step,
            cooldown_out_s=lab.cooldown_out_s,
            cooldown_in_s=lab.cooldown_in_s,
            history_s=lab.history_s,
            horizon_s=(lab.metric_lag_ns + lab.decision_interval_ns + lab.boot_ns + lab.warm_up_ns)
            / 1e9,
        ),
        times=MachineTimes(
            metric_interval_ns=round(lab.metric_interval_ns),
            metric_lag_ns=round(lab.metric_lag_ns),
            decision_interval_ns=round(lab.decision_interval_ns),
            boot_ns=round(lab.boot_ns),
            warm_up_ns=round(lab.warm_up_ns),
            delay_cv_ratio=lab.delay_cv,
        ),
        service=LabService(
            time_ns=round(lab.service_time_ns),
            distribution="exponential" if lab.exponential else "fixed",
            cpus=lab.service_cpus,
        ),
        url=with_ascii_host(url) if url else "",
        observe=args.observe,
        managed=parse_name(args.autoscaler) if args.autoscaler else None,
        observe_interval_ns=round(args.observe_interval_ns),
        target=parse(args.target),
        authorised_hosts=args.authorised_hosts,
        connections=load.connections,
        poisson=load.poisson,
        billing_ns=round(args.billing_ns),
        attack_per_s=round(args.attack or 0),
        rounds=args.rounds,
        seed=args.seed,
    )


def _check(args: _ElasticArguments) -> None:
    """Refuses options that the others leave without effect."""
    if bool(args.url) != bool(args.observe or args.autoscaler) or (
        args.observe and args.autoscaler
    ):
        raise UsageError(
            "--url and one of --observe and --autoscaler belong together.",
            "Name the service, and a command that prints its number of instances, or its "
            "autoscaler.",
        )
    if args.autoscaler and args.target != "local":
        raise UsageError(
            "--autoscaler is followed from this machine.", "Omit --target, or use --observe."
        )
    of_lab = options.stated(field.name for field in fields(_LabOptions))
    if args.url and of_lab:
        flag = of_lab[0]
        raise UsageError(f"{flag} is of the lab's autoscaler.", f"Omit --url, or omit {flag}.")
    of_url = options.stated(("observe_interval_ns", "target", "authorised_hosts"))
    if not args.url and of_url:
        raise UsageError(f"{of_url[0]} is of --url.", f"Add --url, or omit {of_url[0]}.")
    of_profile = options.stated(("profile", "low", "high"))
    if args.load.trace is not None and of_profile:
        raise UsageError(
            f"--trace states the rates, and so does {of_profile[0]}.", f"Omit {of_profile[0]}."
        )
    if args.load.capacity is not None and args.budget is not None:
        raise UsageError("With --capacity nothing is searched within --budget.", "Omit one.")
    if args.url and args.load.capacity is None:
        raise UsageError(
            "The demand needs the capacity of one instance.",
            f"Run `nephoscope capacity {args.url} --objective '{args.load.objective}'` while one "
            "instance serves, and state its result with --capacity.",
        )


def _with_capacity(request: ElasticRequest, store: Store, budget_s: float) -> ElasticRequest:
    """Returns the request with the measured capacity of one machine of the lab."""
    from nephoscope.features.elastic.calibration import capacity_of_one
    from nephoscope.measure.lab import needs
    from nephoscope.report import wording

    needs.require("nephoscope elastic", store.path)
    measured = capacity_of_one(request, store, budget_s)
    output.log(f"Capacity of one instance: {wording.estimate_text(measured)}.")
    return replace(request, capacity_per_s=round(measured.value, 3))
