"""Price of what a trial asks of a service: its requests, and the bytes that are transferred.

Both are upper bounds, from the parameters of the benchmark or from rates that the plan states, so
that a limit in money is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nephoscope.catalog import BenchmarkSpec, instruments
from nephoscope.core.errors import PlanError
from nephoscope.core.model import Setting
from nephoscope.core.reading.sentences import Place
from nephoscope.measure.plans.model import Plan
from nephoscope.measure.targets.kinds.service import ServiceRecord

Use = Mapping[tuple[int, str], float]
"""(setting, target) -> what the requests and the transfer of one trial cost at most."""

_DURATIONS = ("duration_ns", "warmup_ns")
_OPEN_LOOPS = ("constant", "poisson")
_PASSES = 5
"""Passes of storage.transfer over its objects: two of writes, three of reads."""


def use_of(
    plan: Plan,
    settings: Sequence[Setting],
    spec_of: Callable[[str], BenchmarkSpec],
    place: Place = lambda _: "",
) -> Use:
    """Returns the price of a trial of each setting on each service that has a price for use.

    Raises PlanError where nothing bounds what is priced.
    """
    services = {target.name: target for target in plan.targets if isinstance(target, ServiceRecord)}
    costs: dict[tuple[int, str], float] = {}
    for setting in settings:
        spec = spec_of(setting.benchmark)
        params = {param.id: setting.params.get(param.id, param.default) for param in spec.params}
        for name in setting.targets:
            service = services.get(name)
            if service is None or not (service.per_request or service.per_gib):
                continue
            cost = 0.0
            seconds = _seconds(params, setting.timeout_s)
            if service.per_request:
                requests = _requests(spec, params)
                if requests is None and service.requests_per_s is not None:
                    requests = service.requests_per_s * seconds
                if requests is None:
                    raise _unbounded(place, spec, setting, service, "requests", "requests_per_s")
                cost += requests * service.per_request
            if service.per_gib:
                gib = _gib(spec, params)
                if gib is None and service.gib_per_s is not None:
                    gib = service.gib_per_s * seconds
                if gib is None:
                    raise _unbounded(place, spec, setting, service, "bytes", "gib_per_s")
                cost += gib * service.per_gib
            costs[setting.index, name] = cost
    return costs


def _unbounded(
    place: Place, spec: BenchmarkSpec, setting: Setting, service: ServiceRecord, what: str, key: str
) -> PlanError:
    return PlanError(
        f"{place(('benchmarks', setting.entry))}'{service.name}' has a price for its {what}, and "
        f"the parameters of {spec.id} do not bound their number.",
        f"Give the service `{key}`, the highest rate to pay for"
        f"{', or the benchmark an open loop (`arrivals`)' if what == 'requests' else ''}.",
    )


def _seconds(params: Mapping[str, Any], timeout_s: float) -> float:
    """Returns the longest time of a trial: its durations, else its time limit."""
    known = [params[name] / 1e9 for name in _DURATIONS if name in params]
    return min(sum(known), timeout_s) if known else timeout_s


def _requests(spec: BenchmarkSpec, params: Mapping[str, Any]) -> float | None:
    if params.get("arrivals") not in _OPEN_LOOPS:
        return None
    rates = [params["rate_per_s"], params["ramp_end_per_s"], *params["step_rates_per_s"]]
    # Poisson arrivals vary: six standard deviations more are never seen.
    mean = max(rates) * _seconds(params, float("inf"))
    return float(mean + 6 * mean**0.5)


def _gib(spec: BenchmarkSpec, params: Mapping[str, Any]) -> float | None:
    if spec.id == instruments.STORAGE_TRANSFER:
        objects = params["objects"] * params["clients"] * sum(params["object_bytes"])
        return float(_PASSES * objects / 2**30)
    if spec.id == instruments.STORAGE_DURABILITY:
        # Written and read back at most; the ledger may have as many lost ones again.
        return float(2 * params["objects"] * params["object_bytes"] / 2**30)
    requests, each = _requests(spec, params), params.get("expected_body_bytes", -1)
    return None if requests is None or each < 0 else float(requests * each / 2**30)
