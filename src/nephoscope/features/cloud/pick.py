"""A search for a fast machine on a cloud: from the stored mix to the machine that is kept."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nephoscope import catalog
from nephoscope.catalog import FINGERPRINT
from nephoscope.core.model import Better, Estimate
from nephoscope.core.records import dataclass
from nephoscope.features.cloud import picking, speeds
from nephoscope.features.cloud.candidates import Candidates
from nephoscope.features.cloud.pick_records import PickedCandidate, PickedMachine
from nephoscope.features.cloud.picking import LEAST_MACHINES, MachineSearch, SpeedMix
from nephoscope.features.cloud.search import CandidateMachine, Searched, carry_out
from nephoscope.measure import plans
from nephoscope.measure.plans import Plan
from nephoscope.measure.provisioning import Quote, Say
from nephoscope.stats.statistics import ratios


@dataclass(frozen=True, slots=True)
class PickOutcome:
    """A search and what was expected of it. limits: see `picking.limits`; None without a mix."""

    searched: Searched
    limits: tuple[float, ...] | None
    predicted: Estimate | None
    saving: Estimate | None
    search_cost: float | None
    mean_s: float


def plan_of(benchmark: str, sets: dict[str, str], budget_s: float) -> Plan:
    """Returns the plan that measures a candidate: as a census does, where that has the benchmark,
    so that its machines can be compared. Raises PlanError."""
    plan = plans.census(budget_s, metadata=True)
    fingerprint = [entry for entry in plan.benchmarks if entry.benchmark == FINGERPRINT]
    own = [entry for entry in plan.benchmarks if entry.benchmark == benchmark]
    if sets or not own:
        single = plans.single(benchmark, sets, budget_s=budget_s)
        own = [entry.model_copy(update={"on": ()}) for entry in single.benchmarks]
    return plan.model_copy(
        update={
            "name": "cloud-pick",
            "question": "Is this machine worth keeping?",
            "benchmarks": (*fingerprint, *own),
            "concurrent": True,
        }
    )


async def pick(
    source: Candidates,
    search: MachineSearch,
    mix: SpeedMix | None,
    quote: Quote | None,
    say: Say,
    confidence: float,
) -> PickOutcome:
    """Carries the search out; what it was expected to save is computed before it begins."""
    limits = predicted = None
    if mix is not None:
        limits = picking.limits(mix, search)
        if quote is not None:
            predicted = picking.predicted(mix, search, confidence=confidence)
            say(f"Expected saving: {predicted.value:.4g} {search.currency}, "
                f"{predicted.low:.4g} to {predicted.high:.4g}.")  # fmt: skip
    searched = await carry_out(source, search, limits, mix.mean_s if mix else 1.0, say)
    first, selected = searched.candidates[0], searched.selected
    assert selected is not None
    mean_s = mix.mean_s if mix is not None else first.seconds
    cost = source.removed_cost if quote is not None else None
    saving = None
    if cost is not None and source.line is not None:
        saving = real_saving(first, selected, mean_s, search, cost, source.line.better, confidence)
    return PickOutcome(searched, limits, predicted, saving, cost, mean_s)


def real_saving(
    first: CandidateMachine,
    selected: CandidateMachine,
    mean_s: float,
    search: MachineSearch,
    cost: float,
    better: Better,
    confidence: float,
) -> Estimate:
    """Returns what the search saved against keeping the first machine unmeasured.

    From the speeds of both as measured; the interval is that of their ratio, from the trials. cost:
    of all machines until the decision.
    """
    per_h, work_h = search.price_per_h, search.hours
    first_h = work_h * first.seconds / mean_s
    value = per_h * (first_h - work_h * selected.seconds / mean_s) - cost
    n = min(len(first.values), len(selected.values))
    method = "measured speeds, billed time at the quoted price"
    plain = Estimate(value, None, None, confidence, n, search.currency, method)
    if selected is first:
        return replace(plain, note="the first machine was kept: only the search was paid for")
    sign = 1.0 if better is Better.HIGHER else -1.0
    speed = ratios.log_welch(
        np.array(first.values) ** sign, np.array(selected.values) ** sign, confidence
    )
    if speed is None or speed.low is None or speed.high is None:
        return replace(plain, note="no interval from a single trial")
    low, high = (per_h * first_h * (1 - 1 / end) - cost for end in (speed.low, speed.high))
    return replace(plain, low=min(low, value), high=max(high, value))


def mix_for(values: speeds.Values, type_name: str) -> tuple[speeds.SpeedLine, SpeedMix] | str:
    """Returns the mix of the stored machines of a type, or why there is none."""
    known_mix = speeds.mix_of(values, type_name)
    if known_mix is None:
        return f"No machine of {type_name} is stored with this benchmark"
    if len(known_mix[1].seconds) < LEAST_MACHINES:
        return (
            f"Only {len(known_mix[1].seconds)} machines of {type_name} are stored, and a mix needs "
            f"{LEAST_MACHINES}"
        )
    return known_mix


def document(outcome: PickOutcome, source: Candidates, **known: Any) -> PickedMachine:
    """Returns the document of a search. known: the fields that the command knows."""
    searched, line = outcome.searched, source.line
    assert line is not None
    assert searched.selected is not None
    assert source.selected is not None
    slowest = max(entry.seconds for entry in searched.candidates)
    reference = outcome.mean_s if outcome.limits is not None else slowest
    ((_, machine),) = source.selected.machines.items()
    return PickedMachine(
        benchmark=line.benchmark,
        metric=line.metric,
        launches=searched.launches,
        keeps_from=1 / outcome.limits[0] if outcome.limits is not None else None,
        candidates=tuple(_rows(searched, line, reference)),
        predicted=outcome.predicted,
        saving=outcome.saving,
        search_cost=outcome.search_cost,
        selected=machine.id,
        address=machine.address,
        rental=source.selected.name,
        stopped=searched.stopped,
        problems=tuple(dict.fromkeys(source.problems)),
        **known,
    )


def _rows(
    searched: Searched, line: speeds.SpeedLine, reference_s: float
) -> Sequence[PickedCandidate]:
    metrics = {entry.id: entry.unit for entry in catalog.load().benchmark(line.benchmark).metrics}
    return [
        PickedCandidate(
            entry.name,
            entry.id,
            entry.zone,
            entry.host,
            statistics.median(entry.values),
            metrics[line.metric],
            reference_s / entry.seconds,
            len(entry.values),
            entry is searched.selected,
        )
        for entry in searched.candidates
    ]
