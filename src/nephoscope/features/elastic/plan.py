"""The plan of `elastic`: an open loop of varying rate on a service that an autoscaler scales."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nephoscope import catalog
from nephoscope.autoscalers import rules
from nephoscope.catalog import instruments
from nephoscope.core.errors import UsageError
from nephoscope.core.format_versions import TOPOLOGY
from nephoscope.features.elastic.autoscalers.backgrounds import own_api, own_command
from nephoscope.features.elastic.autoscalers.names import AutoscalerName
from nephoscope.features.elastic.profiles import LoadProfile
from nephoscope.features.elastic.rule_texts import RuleLimits, rule_of
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.plans.model import Plan
from nephoscope.measure.targets.kinds.record import TargetRecord as Target

AUTOSCALER = "autoscaler"
"""Factor of the plan: the rule, or `observed`."""
NETWORK, PORT, CONTROL_PORT = "10.86.0.0/24", 8080, 8081
_LB_HOST, _FIRST_MACHINE, _CLIENT = 2, 10, 200
MAX_MACHINES = 32
_SPARE_S = 60.0
_LOG_LINES = 8000
"""Values, and decisions of twice their length, that the log of an autoscaler holds in 1 MiB."""
_INTERVALS = 600
"""Intervals of the load's series, at most about so many: one of 100 ms at least."""


@dataclass(frozen=True, slots=True)
class MachineTimes:
    """Times of the lab's machines and of what the autoscaler sees; in ns."""

    metric_interval_ns: int = 1_000_000_000
    metric_lag_ns: int = 0
    decision_interval_ns: int = 5_000_000_000
    boot_ns: int = 2_000_000_000
    warm_up_ns: int = 1_000_000_000
    delay_cv_ratio: float = 0.0


@dataclass(frozen=True, slots=True)
class LabService:
    """The service of a lab's machines. cpus: each works for its time, on so many CPUs at most;
    0: it waits."""

    time_ns: int = 20_000_000
    distribution: str = "fixed"
    cpus: float = 0.0

    @property
    def path(self) -> str:
        """Returns the path of its requests."""
        return f"/cpu/{self.time_ns}" if self.cpus else "/service"


@dataclass(frozen=True, slots=True)
class ElasticRequest:
    """Request for an experiment.

    rule_texts: of the lab's autoscaler, one alternative each. url, observe: a service that another
    autoscaler scales, and the command that prints its number of instances; then `target` is the
    generator. managed, endpoint: instead of the command, an autoscaler that is followed by its API;
    flags: parameters of its controller. capacity_per_s: of one instance within the objective.
    attack_per_s: requests that nobody needs, in the second half of a trial. contract_text, bill: of
    a contract whose credit is stated; empty without one.
    """

    profile: LoadProfile
    objective: LatencyObjective
    objective_text: str
    capacity_per_s: float
    rule_texts: tuple[str, ...] = ("rate=40",)
    limits: RuleLimits = field(default_factory=RuleLimits)
    times: MachineTimes = field(default_factory=MachineTimes)
    service: LabService = field(default_factory=LabService)
    url: str = ""
    observe: str = ""
    managed: AutoscalerName | None = None
    endpoint: str = ""
    observe_interval_ns: int = 1_000_000_000
    target: Target | None = None
    authorised_hosts: tuple[str, ...] = ()
    connections: int = 200
    poisson: bool = False
    billing_ns: int = 1_000_000_000
    attack_per_s: int = 0
    contract_text: str = ""
    bill: str = ""
    rounds: int = 3
    params: dict[str, Any] = field(default_factory=dict)
    flags: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None


def plan_elastic(request: ElasticRequest) -> Plan:
    """Returns the plan; UsageError for what makes no sense, PlanError for a wrong parameter."""
    if request.objective.share_ratio not in (0.5, 0.99):
        raise UsageError(
            f"'{request.objective_text}' cannot be judged interval by interval.",
            "Use p50 or p99.",
        )
    values = _common(request)
    if request.url:
        values |= _observed(request)
    else:
        values |= _lab(request, [*request.rule_texts])
        values["benchmarks"] = [_load(request, _lab_url(request), _profile(request))]
        _name(values)
    return from_values(values, catalog.load(), lambda _: "")


def plan_capacity(
    request: ElasticRequest, rates_per_s: Sequence[float] | None, trials: int, trial_s: float
) -> Plan:
    """Returns the plan that measures rates on one machine of the lab, behind the balancer.

    rates_per_s: of an open loop; None for a closed loop.
    """
    values = _common(request)
    values |= {"name": "elastic-capacity", "question": "How much does one instance serve?"}
    values["repeat"] = {"min": trials, "max": trials}
    single = replace(request, limits=replace(request.limits, minimum=1, maximum=1))
    values |= _lab(single, ["schedule=0s:1"])
    params = {"duration_ns": round(trial_s * 1e9), "warmup_ns": "200ms"}
    entry = _load(request, _lab_url(request), {**params, "arrivals": "closed"})
    if rates_per_s is not None:
        entry["params"]["arrivals"] = "poisson" if request.poisson else "constant"
        entry["factors"] = {"rate_per_s": list(rates_per_s)}
    else:
        entry["params"]["connections"] = 4
    entry["timeout"] = trial_s + _SPARE_S
    values["benchmarks"] = [entry]
    _name(values)
    return from_values(values, catalog.load(), lambda _: "")


def _common(request: ElasticRequest) -> dict[str, Any]:
    values: dict[str, Any] = {
        "name": "elastic",
        "question": "How closely does the number of instances follow the load?",
        "repeat": {"min": request.rounds, "max": request.rounds},
        "warmup": 0,
        # `validity` judges by the objective how late a generator may be.
        "accept": ["throttled", "late_sends"],
        "phases": {"start": "60s", "stop": "60s"},
    }
    return values if request.seed is None else {**values, "seed": request.seed}


def _profile(request: ElasticRequest) -> dict[str, Any]:
    duration_ns = round(request.profile.duration_s * 1e9)
    rates = request.profile.rates_per_s
    attack = attack_of(len(rates), request.attack_per_s)
    return {
        "arrivals": "poisson" if request.poisson else "constant",
        "step_rates_per_s": [round(sum(pair)) for pair in zip(rates, attack, strict=True)],
        "duration_ns": duration_ns,
        "warmup_ns": 0,
        "interval_ns": max(100_000_000, duration_ns // _INTERVALS),
    }


def _load(request: ElasticRequest, url: str, params: dict[str, Any]) -> dict[str, Any]:
    limit_ns = max(1_000_000_000, 10 * request.objective.limit_ns)
    return {
        "benchmark": instruments.HTTP_LOAD,
        "timeout": request.profile.duration_s + _SPARE_S,
        "params": {
            "url": url,
            "connections": request.connections,
            "timeout_ns": limit_ns,
            "authorised_hosts": list(request.authorised_hosts),
            **params,
            **request.params,
        },
    }


def _judged(request: ElasticRequest) -> dict[str, Any]:
    contract = {"contract": request.contract_text, "bill": request.bill}
    return {
        "objective": request.objective_text,
        "capacity_per_s": request.capacity_per_s,
        "billing_ns": request.billing_ns,
        "attack_per_s": float(request.attack_per_s),
        **{name: text for name, text in contract.items() if text},
    }


def attack_of(parts: int, attack_per_s: float) -> list[float]:
    """Returns the requests per second of an attack in each part: it takes the second half."""
    return [attack_per_s * (place >= parts / 2) for place in range(parts)]


def _observed(request: ElasticRequest) -> dict[str, Any]:
    assert request.target is not None
    if request.managed is None:
        background = own_command(request.observe)
    else:
        background = own_api(request.managed, request.endpoint, request.url, request.flags)
    background["on"] = request.target.name
    background["params"] |= {"interval_ns": request.observe_interval_ns, **_judged(request)}
    return {
        "targets": [request.target],
        "backgrounds": [background],
        "factors": {AUTOSCALER: {"path": "backgrounds", "levels": [[background["name"]]]}},
        "benchmarks": [_load(request, request.url, _profile(request))],
    }


def _address(last: int) -> str:
    return f"{NETWORK.rsplit('.', 1)[0]}.{last}"


def _lab_url(request: ElasticRequest) -> str:
    return f"http://{_address(_LB_HOST)}:{PORT}{request.service.path}"


def rule_names(texts: Sequence[str]) -> list[str]:
    """Returns the names of rules as backgrounds: 'cpu-0.6' of 'cpu=0.6', each once."""
    names: list[str] = []
    for text in texts:
        name = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower()[:40]
        number = sum(known == name or known.startswith(f"{name}-n") for known in names)
        names.append(f"{name}-n{number + 1}" if number else name)
    return names


def _lab(request: ElasticRequest, rule_texts: Sequence[str]) -> dict[str, Any]:
    """Targets, topology, backgrounds and factors of a lab with one balancer and its machines."""
    own = [rule_of(text, request.limits) for text in rule_texts]
    if any(rule["metric"] == rules.CPU for rule in own) and not request.service.cpus:
        raise UsageError(
            "A rule by CPU needs a service that uses CPU time.", "Add --service-cpus 0.2."
        )
    count = request.limits.maximum
    if not request.limits.minimum <= count <= MAX_MACHINES:
        raise UsageError(
            f"Limits of {request.limits.minimum} to {count} instances make no sense in a lab.",
            f"Use a maximum from the minimum to {MAX_MACHINES}.",
        )
    _check_log(request)
    machines = [f"m{number}" for number in range(1, count + 1)]
    addresses = {
        **{name: _address(_FIRST_MACHINE + number) for number, name in enumerate(machines)},
        "balancer": _address(_LB_HOST),
        "client": _address(_CLIENT),
    }
    hosts: dict[str, Any] = {name: {"address": address} for name, address in addresses.items()}
    if request.service.cpus:
        for name in machines:
            hosts[name]["cpu"] = {"cap": request.service.cpus, "cap_period": "20ms"}
    lab = {
        "version": TOPOLOGY.version,
        "network": NETWORK,
        "hosts": hosts,
        "switches": {"lan": {}},
        "links": {f"{name}-port": {"between": [name, "lan"]} for name in addresses},
    }
    backgrounds = [_machine(request, name, addresses[name]) for name in machines]
    names = rule_names(rule_texts)
    for name, rule in zip(names, own, strict=True):
        backgrounds.append(
            {
                "name": name,
                "benchmark": instruments.AUTOSCALER_REFERENCE,
                "on": "balancer",
                "params": _scaler(request, rule, {each: addresses[each] for each in machines}),
            }
        )
    return {
        "lab": lab,
        "targets": [{"name": name, "kind": "lab"} for name in addresses],
        "backgrounds": backgrounds,
        "factors": {
            AUTOSCALER: {
                "path": "backgrounds",
                "levels": [[name, *machines] for name in names],
            }
        },
    }


def _check_log(request: ElasticRequest) -> None:
    """Refuses a trial whose log would be cut off, after it was measured."""
    times = request.times
    lines = 1e9 * request.profile.duration_s / times.metric_interval_ns
    lines += 2e9 * request.profile.duration_s / times.decision_interval_ns
    if lines > _LOG_LINES:
        raise UsageError(
            f"The autoscaler would log {lines:,.0f} values and decisions, and {_LOG_LINES:,} fit.",
            "Use a longer --metric-interval or --decision-interval, or a shorter --duration.",
        )


def _name(values: dict[str, Any]) -> None:
    """Names the lab by its plan, and lets its client be the generator."""
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    values["lab"]["name"] = f"ela-{digest[:8]}"
    for entry in values["benchmarks"]:
        entry["on"] = "client"
        entry["params"]["authorised_hosts"] = [_address(_LB_HOST)]


def _machine(request: ElasticRequest, name: str, address: str) -> dict[str, Any]:
    return {
        "name": name,
        "benchmark": instruments.AUTOSCALER_INSTANCE,
        "on": name,
        "params": {
            "address": address,
            "port": CONTROL_PORT,
            "service": f"{address}:{PORT}",
            "distribution": request.service.distribution,
            "service_mean_ns": request.service.time_ns,
        },
    }


def _scaler(
    request: ElasticRequest, rule: dict[str, Any], machines: dict[str, str]
) -> dict[str, Any]:
    times = request.times
    return {
        "address": _address(_LB_HOST),
        "port": CONTROL_PORT,
        "service_port": PORT,
        "machines": [f"{name} {at}:{CONTROL_PORT} {at}:{PORT}" for name, at in machines.items()],
        "rule": json.dumps(rule),
        "metric_interval_ns": times.metric_interval_ns,
        "metric_lag_ns": times.metric_lag_ns,
        "decision_interval_ns": times.decision_interval_ns,
        "boot_ns": times.boot_ns,
        "warm_up_ns": times.warm_up_ns,
        "delay_cv_ratio": times.delay_cv_ratio,
        "initial": max(1, rule["minimum"]),
        "cpus": request.service.cpus or 1.0,
        **_judged(request),
    }
