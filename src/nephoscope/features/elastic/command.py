"""`nephoscope elastic`: how closely an autoscaler follows the load."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nephoscope.cli.kit import measuring, output
from nephoscope.cli.kit.command import MEASURES, command
from nephoscope.cli.kit.documents import PREVIEW, RESULT
from nephoscope.features.elastic.option_checks import check
from nephoscope.features.elastic.options import ElasticArguments, LoadOptions
from nephoscope.features.load.options import generator_hosts, http_url

if TYPE_CHECKING:
    from nephoscope.features.elastic.growth_plan import GrowthRequest
    from nephoscope.features.elastic.plan import ElasticRequest
    from nephoscope.features.elastic.profiles import LoadProfile
    from nephoscope.store import Store

_DURATION_S = 60.0
_BUDGET_S = 180.0
_ROUNDS = 3
_LAB_RULE = "rate=40"


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
def elastic(args: ElasticArguments) -> int:
    """Measure how closely an autoscaler follows the load.

    Sends an open loop of varying rate to a service, and compares the number of instances with the
    number that the load needs within the objective. Makes a lab with an autoscaler of its own,
    whose rules and delays are options; with --url, any other one is observed by a command, or is
    followed by its API. With --url alone, ramps show from outside how far the service has grown.
    """
    from nephoscope.features.elastic import terminal
    from nephoscope.features.elastic.plan import plan_elastic
    from nephoscope.store import Store

    check(args)
    if args.url and not (args.observe or args.autoscaler):
        return _growth(args)
    request = _request(args)
    plan_elastic(request)  # what it refuses is refused before anything is measured
    store = Store(args.run.store)
    if args.load.capacity is None and not args.run.dry_run:
        request = _with_capacity(request, store, args.budget or _BUDGET_S)
    return measuring.run_or_preview(
        plan_elastic(request),
        store,
        lab_for="" if args.url else "nephoscope elastic",
        text_of=terminal.text,
        as_json=args.run.as_json,
        fresh=args.run.fresh,
        dry_run=args.run.dry_run,
    )


def _profile(load: LoadOptions) -> LoadProfile:
    from nephoscope.features.elastic.profiles import profile_of, profile_of_file

    if load.trace is not None:
        return profile_of_file(load.trace, load.duration_s)
    return profile_of(load.profile, load.low, load.high, load.duration_s or _DURATION_S)


def _request(args: ElasticArguments) -> ElasticRequest:
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
        contract_text=_contract_text(args),
        bill=args.bill or "",
        rounds=args.rounds or _ROUNDS,
        seed=args.run.seed,
    )


def _growth(args: ElasticArguments) -> int:
    """Measures a service of which only the URL is known, by ramps."""
    from nephoscope.features.elastic import growth_terminal
    from nephoscope.features.elastic.growth_plan import labels_of, plan_growth
    from nephoscope.store import Store

    request = _growth_request(args)
    plan, store = plan_growth(request), Store(args.run.store)
    if args.run.dry_run:
        from nephoscope.cli.kit import dry_run as preview

        return preview.of_plan(plan, store, as_json=args.run.as_json)
    run = measuring.executed(plan, store, fresh=args.run.fresh, labels=labels_of(request))
    return measuring.present(run, as_json=args.run.as_json, text_of=growth_terminal.text)


def _growth_request(args: ElasticArguments) -> GrowthRequest:
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
        seed=args.run.seed,
    )


def _contract_text(args: ElasticArguments) -> str:
    """Returns the text of --contract, which the run is to be judged by; empty without one."""
    from nephoscope.features.elastic import credits
    from nephoscope.features.load.objective import LatencyObjective
    from nephoscope.features.sla import credit, files

    if not args.contract:
        return ""
    text, name = files.text_of(args.contract)
    credits.check(files.from_text(text, name), LatencyObjective.of(args.load.objective))
    if args.bill is not None:
        credit.amount_of(args.bill, "--bill")
    return text


def _url(args: ElasticArguments) -> str:
    return http_url(args.url) if args.url else ""


def _with_capacity(request: ElasticRequest, store: Store, budget_s: float) -> ElasticRequest:
    """Returns the request with the measured capacity of one machine of the lab."""
    from nephoscope.features.elastic.calibration import capacity_of_one
    from nephoscope.measure.lab import needs
    from nephoscope.report import wording

    needs.require("nephoscope elastic", store.path)
    measured = capacity_of_one(request, store, budget_s)
    output.log(f"Capacity of one instance: {wording.estimate_text(measured)}.")
    return replace(request, capacity_per_s=round(measured.value, 3))
