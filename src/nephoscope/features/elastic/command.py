"""`nephoscope elastic`: how closely an autoscaler follows the load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import measuring, options, output
from nephoscope.cli.kit.command import MEASURES, command
from nephoscope.cli.kit.documents import PREVIEW, RESULT
from nephoscope.cli.kit.named import TARGET
from nephoscope.cli.kit.options import Count, duration, option
from nephoscope.core.errors import UsageError
from nephoscope.features.elastic.options import LabOptions, LoadOptions
from nephoscope.features.load.options import GENERATORS, RATE, generator_hosts, with_ascii_host

if TYPE_CHECKING:
    from nephoscope.features.elastic.growth_plan import GrowthRequest
    from nephoscope.features.elastic.plan import ElasticRequest
    from nephoscope.features.elastic.profiles import LoadProfile
    from nephoscope.store import Store

_DURATION_S = 60.0
_BUDGET_S = 180.0
_ROUNDS = 3
_LAB_RULE = "rate=40"


@dataclass(frozen=True, slots=True)
class _ElasticArguments:
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
        duration("50 ms", "1 h", unit="ns"),
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
        "--url http://127.0.0.1:8080/ --low 100 --high 900 --objective 'p99 < 100ms'",
    ),
)
def elastic(args: _ElasticArguments) -> int:
    """Measure how closely an autoscaler follows the load.

    Sends an open loop of varying rate to a service, and compares the number of instances with the
    number that the load needs within the objective. Makes a lab with an autoscaler of its own,
    whose rules and delays are options; with --url, any other one is observed by a command, or is
    followed by its API. With --url alone, ramps show from outside how far the service has grown.
    """
    from nephoscope.features.elastic import terminal
    from nephoscope.features.elastic.plan import plan_elastic
    from nephoscope.store import Store

    _check(args)
    if args.url and not (args.observe or args.autoscaler):
        return _growth(args)
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


def _profile(load: LoadOptions) -> LoadProfile:
    from nephoscope.features.elastic.profiles import profile_of, profile_of_file

    if load.trace is not None:
        return profile_of_file(load.trace, load.duration_s)
    return profile_of(load.profile, load.low, load.high, load.duration_s or _DURATION_S)


def _request(args: _ElasticArguments) -> ElasticRequest:
    from nephoscope.features.elastic.autoscalers.names import parse as parse_name
    from nephoscope.features.elastic.plan import ElasticRequest, LabService, MachineTimes
    from nephoscope.features.elastic.rule_texts import RuleLimits
    from nephoscope.features.load.objective import LatencyObjective
    from nephoscope.measure.targets.kinds import parse

    load, lab = args.load, args.lab
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
        url=_url(args),
        observe=args.observe,
        managed=parse_name(args.autoscaler) if args.autoscaler else None,
        observe_interval_ns=round(args.observe_interval_ns),
        target=parse(args.target),
        authorised_hosts=args.authorised_hosts,
        connections=load.connections,
        poisson=load.poisson,
        billing_ns=round(args.billing_ns),
        attack_per_s=round(args.attack or 0),
        rounds=args.rounds or _ROUNDS,
        seed=args.seed,
    )


def _growth(args: _ElasticArguments) -> int:
    """Measures a service of which only the URL is known, by ramps."""
    from nephoscope.features.elastic import growth_terminal
    from nephoscope.features.elastic.growth_plan import labels_of, plan_growth
    from nephoscope.store import Store

    request = _growth_request(args)
    plan, store = plan_growth(request), Store(args.store)
    if args.dry_run:
        from nephoscope.cli.kit import dry_run as preview

        return preview.of_plan(plan, store, as_json=args.as_json)
    run = measuring.executed(plan, store, fresh=args.fresh, labels=labels_of(request))
    return measuring.present(run, as_json=args.as_json, text_of=growth_terminal.text)


def _growth_request(args: _ElasticArguments) -> GrowthRequest:
    from nephoscope.features.elastic.growth_plan import ROUNDS, GrowthRequest
    from nephoscope.features.load.objective import LatencyObjective

    load = args.load
    return GrowthRequest(
        url=_url(args),
        low_per_s=load.low,
        high_per_s=load.high,
        ramp_s=load.duration_s or _DURATION_S,
        objective=LatencyObjective.of(load.objective),
        objective_text=load.objective,
        hosts=tuple(generator_hosts(args.generators, args.target, load.connections)),
        rounds=args.rounds or ROUNDS,
        connections=load.connections,
        poisson=load.poisson,
        authorised_hosts=args.authorised_hosts,
        seed=args.seed,
    )


def _url(args: _ElasticArguments) -> str:
    url = args.url if "://" in args.url or not args.url else f"http://{args.url}"
    return with_ascii_host(url) if url else ""


def _check(args: _ElasticArguments) -> None:
    """Refuses options that the others leave without effect."""
    if args.observe and args.autoscaler:
        raise UsageError("--observe and --autoscaler exclude each other.", "Omit one.")
    observer = "--observe" if args.observe else "--autoscaler" if args.autoscaler else ""
    if observer and not args.url:
        raise UsageError(f"{observer} is of --url.", f"Add --url, or omit {observer}.")
    if args.autoscaler and args.target != "local":
        raise UsageError(
            "--autoscaler is followed from this machine.", "Omit --target, or use --observe."
        )
    of_lab = options.stated(field.name for field in fields(LabOptions))
    if args.url and of_lab:
        raise UsageError(
            f"{of_lab[0]} is of the lab's autoscaler.", f"Omit --url, or omit {of_lab[0]}."
        )
    of_url = options.stated(("observe_interval_ns", "target", "authorised_hosts", "generators"))
    if not args.url and of_url:
        raise UsageError(f"{of_url[0]} is of --url.", f"Add --url, or omit {of_url[0]}.")
    of_profile = options.stated(("profile", "low", "high"))
    if args.load.trace is not None and of_profile:
        raise UsageError(
            f"--trace states the rates, and so does {of_profile[0]}.", f"Omit {of_profile[0]}."
        )
    if args.load.capacity is not None and args.budget is not None:
        raise UsageError("With --capacity nothing is searched within --budget.", "Omit one.")
    if args.url and observer:
        _check_observed(args, observer)
    elif args.url:
        _check_growth(args)


def _check_observed(args: _ElasticArguments, observer: str) -> None:
    if args.generators:
        raise UsageError(
            f"Several generators are for --url alone, and {observer} is followed with one.",
            f"Omit --generators, or omit {observer}.",
        )
    if args.load.capacity is None:
        raise UsageError(
            "The demand needs the capacity of one instance.",
            f"Run `nephoscope capacity {args.url} --objective '{args.load.objective}'` while one "
            "instance serves, and state its result with --capacity.",
        )


def _check_growth(args: _ElasticArguments) -> None:
    of_instances = options.stated(
        ("capacity", "trace", "observe_interval_ns", "billing_ns", "attack", "budget")
    )
    if of_instances:
        raise UsageError(
            f"{of_instances[0]} needs the number of instances of --url.",
            f"Add --observe or --autoscaler, or omit {of_instances[0]}.",
        )
    if options.stated(("profile",)) and args.load.profile != "ramp":
        raise UsageError(
            f"The growth of --url alone is seen by ramps, and not by --profile "
            f"{args.load.profile}.",
            "Add --observe or --autoscaler, or omit --profile.",
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
