"""The odd targets of a run: facts, metrics, losses and clocks that differ from the others'."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from nephoscope.catalog import FINGERPRINT, instruments
from nephoscope.core import units
from nephoscope.core.model import Better, TrialRecord
from nephoscope.core.records import dataclass
from nephoscope.features.fleet import rule
from nephoscope.features.fleet.rule import OddValue
from nephoscope.measure.runs.trials.failure_names import DEADLINE
from nephoscope.report import wording
from nephoscope.results import analyse_run, run_settings
from nephoscope.results.exclusions import cause_words
from nephoscope.results.run_data import RunData
from nephoscope.results.run_settings import HiddenSetting
from nephoscope.stats import facts
from nephoscope.stats.exclusions import slowest_value
from nephoscope.stats.statistics import histograms
from nephoscope.store import StoredRun
from nephoscope.store.query import TrialHistogram, TrialValue

PLAN = "fleet"
SETTINGS = "fleet"
"""Key of the manifest: false_alarms, margin, and clock_offsets (target -> offset, bound in ns)."""

CLOCK_MARGIN_NS = 100e6
"""Offset of a clock from the fleet's median up to which it is not odd."""

_FACTS: Mapping[str, str] = {
    "cpu.by_cpuid.brand": "CPU model",
    "topology.allowed_cpus": "number of usable CPUs",
    "limits.cpu_quota_cpus": "CPU quota",
    "kernel.release": "kernel",
    "clock.source": "clock source",
    "memory.transparent_hugepage": "transparent huge pages",
}
_PORT_FACTS: Mapping[str, str] = {
    "speed_bits_per_s": "speed",
    "duplex": "duplex",
    "mtu_bytes": "MTU",
    "state": "state",
}


@dataclass(frozen=True, slots=True)
class Outlier:
    """One respect in which a target differs from the others, as a sentence.

    check: what was compared. value, typical: of the target and of the fleet, null for texts.
    """

    target: str
    check: str
    sentence: str
    value: float | None = None
    typical: float | None = None


@dataclass(frozen=True, slots=True)
class FleetCheck:
    """Targets that differ from the others.

    targets: number of them. metrics, facts: names of what was compared over all. false_alarms:
    probability that anything of `metrics` is reported where all targets are equal. margin: relative
    difference that counts as none. unchecked: what could not be compared, and why. hidden_settings:
    what differs between the targets and is not compared.
    """

    targets: int
    odd: tuple[Outlier, ...]
    metrics: tuple[str, ...]
    facts: tuple[str, ...]
    false_alarms: float
    margin: float
    unchecked: tuple[str, ...] = ()
    hidden_settings: tuple[HiddenSetting, ...] = ()


def analyse(data: RunData) -> FleetCheck | None:
    """Returns the odd targets of a run of the plan `fleet`; None of other runs."""
    settings = data.manifest.stored.get(SETTINGS)
    return None if settings is None else check(data, settings)


def stored_check(settings: Mapping[str, Any], path: Path) -> FleetCheck:
    """Returns the odd targets of the run in a folder. settings: instead of those it has stored."""
    run = StoredRun(path)
    known = run.manifest.stored.get(SETTINGS) or {}
    return check(analyse_run.run_data(run), {**known, **settings})


def check(data: RunData, settings: Mapping[str, Any]) -> FleetCheck:
    """Returns the odd targets of any run of several targets."""
    targets = data.manifest.target_names
    settings_of_targets = (
        run_settings.settings_of(data.manifest, name, data.fingerprints.get(name) or {})
        for name in targets
    )
    checked = check_fleet(
        list(targets),
        _metrics(data),
        data.fingerprints,
        losses=_losses(data),
        offsets=settings.get("clock_offsets") or {},
        false_alarms=float(settings.get("false_alarms", rule.FALSE_ALARMS)),
        margin=float(settings.get("margin", rule.MARGIN)),
    )
    hidden = run_settings.hidden_settings(settings_of_targets, compared=_FACTS.values())
    return replace(checked, hidden_settings=hidden)


@dataclass(frozen=True, slots=True)
class FleetMetric:
    """A metric at one setting: its unit, and the median over the trials of each target.

    included: the same medians with the trials that were excluded for what they may have measured.
    excluded: number of those trials and their causes, by target. Both are empty where there are
    none.
    """

    unit: str
    values: Mapping[str, float]
    included: Mapping[str, float] = field(default_factory=dict)
    excluded: Mapping[str, str] = field(default_factory=dict)


def check_fleet(
    targets: Sequence[str],
    metrics: Mapping[str, FleetMetric],
    fingerprints: Mapping[str, Any],
    *,
    losses: Mapping[str, tuple[int, int]],
    offsets: Mapping[str, Sequence[float]],
    false_alarms: float = rule.FALSE_ALARMS,
    margin: float = rule.MARGIN,
) -> FleetCheck:
    """Returns the odd targets; the false-alarm rate holds over all targets and metrics.

    metrics: by name. losses: target -> lost and sent packets. offsets: target -> offset of its
    clock and bound of its error, ns.
    """
    usable = {name: metric for name, metric in metrics.items() if len(metric.values) >= rule.FEWEST}
    unchecked = [
        f"{name}: {len(metric.values)} of {len(targets)} targets have it, and {rule.FEWEST} are "
        "needed."
        for name, metric in metrics.items()
        if name not in usable
    ]
    # Each metric has its part of the rate (Bonferroni), whatever their dependence.
    alpha = false_alarms / max(1, len(usable) + bool(losses))
    odd = [*_odd_facts(fingerprints), *_odd_clocks(offsets)]
    for name, metric in usable.items():
        odd_values, undecided = _odd_values(metric, alpha, margin)
        unchecked += [
            f"{target}: {name} is odd or not, depending on {why}."
            for target, why in undecided.items()
        ]
        for target, deviation in odd_values.items():
            text = f"{target}: {name} is {_against_the_fleet(deviation, metric.unit)}."
            odd.append(Outlier(target, name, text, deviation.value, deviation.typical))
    for target, loss in rule.odd_losses(losses, alpha=alpha).items():
        lost, usual = wording.percent(loss.value), wording.percent(loss.typical) or "0 %"
        text = (
            f"{target}: {lost} of the packets to the reference are lost; {usual} is the fleet's "
            "median."
        )
        odd.append(Outlier(target, "packet loss", text, loss.value, loss.typical))
    names = [*usable, *(["packet loss"] if losses else [])]
    compared = [
        *_FACTS.values(),
        *(f"{port_fact} of network ports" for port_fact in _PORT_FACTS.values()),
    ]
    if offsets:
        compared.append("clock offset")
    if len(targets) < rule.FEWEST_OF_FACTS:
        unchecked.append(f"facts: {rule.FEWEST_OF_FACTS} targets are needed.")
        compared = []
    order = {target: place for place, target in enumerate(targets)}
    odd.sort(key=lambda outlier: order.get(outlier.target, len(order)))
    return FleetCheck(
        len(targets),
        tuple(odd),
        tuple(names),
        tuple(compared),
        false_alarms,
        margin,
        tuple(unchecked),
    )


def _odd_values(
    metric: FleetMetric, alpha: float, margin: float
) -> tuple[dict[str, OddValue], dict[str, str]]:
    """Returns the odd targets, and why others are undecided.

    Both hold without and with the excluded trials.
    """
    without = rule.odd_values(metric.values, alpha=alpha, margin=margin)
    if not metric.included:
        return without, {}
    included = rule.odd_values(metric.included, alpha=alpha, margin=margin)
    every = ", ".join(f"{trials} of {target}" for target, trials in metric.excluded.items())
    return (
        {target: value for target, value in without.items() if target in included},
        {
            target: f"the excluded trials: {metric.excluded.get(target) or every}"
            for target in metric.included
            if (target in without) != (target in included)
        },
    )


def _metrics(data: RunData) -> dict[str, FleetMetric]:
    """Headline metrics by name; of a distribution the median of each trial."""
    excluded = data.excluded
    included = _medians(data, excluded.values, excluded.distributions, excluded.records)
    metrics = {}
    for key, values in _medians(data, data.values, data.distributions, ()).items():
        benchmark, metric, factors, unit = key
        setting = wording.factors_text(json.loads(factors))
        name = wording.full_name(benchmark, metric)
        metrics[f"{name} ({setting})" if setting else name] = FleetMetric(
            unit, values, included.get(key, {}), _excluded(excluded.records, benchmark, factors)
        )
    return metrics


_LineOfFleet = tuple[str, str, str, str]
"""Benchmark, metric, factors and unit."""


def _medians(
    data: RunData,
    values: Sequence[TrialValue],
    distributions: Sequence[TrialHistogram],
    excluded: Sequence[TrialRecord],
) -> dict[_LineOfFleet, dict[str, float]]:
    """Median of each target; of `excluded`, trials over their time limit are the slowest."""
    by_line: dict[_LineOfFleet, dict[str, list[float]]] = {}
    better: dict[_LineOfFleet, str] = {}
    scalars = ((row, row.value) for row in values)
    medians = ((row, histograms.quantile([(row.values, row.counts)], 0.5)) for row in distributions)
    for row, value in (*scalars, *medians):
        spec = data.run.spec(row.benchmark)
        if row.benchmark == FINGERPRINT:  # once for each target, whatever disturbed it
            continue
        if any(metric.headline and metric.id == row.metric for metric in spec.metrics):
            key = (row.benchmark, row.metric, row.factors, row.unit)
            better[key] = row.better
            by_line.setdefault(key, {}).setdefault(row.target, []).append(value)
    for key, of in by_line.items():
        for record in excluded:
            if record.cause == DEADLINE and _is_of(record, key[0], key[2]):
                slowest = slowest_value(Better(better[key]), positive=True)
                of.setdefault(record.key.target, []).append(slowest)
    return {
        key: {target: float(np.median(own)) for target, own in of.items()}
        for key, of in by_line.items()
    }


def _excluded(records: Sequence[TrialRecord], benchmark: str, factors: str) -> dict[str, str]:
    """Number of excluded trials and their causes, by target."""
    by_target: dict[str, list[str]] = {}
    for record in records:
        if _is_of(record, benchmark, factors):
            words = cause_words(record.cause, record.status)
            by_target.setdefault(record.key.target, []).append(words)
    return {
        target: f"{len(causes)} ({', '.join(dict.fromkeys(causes))})"
        for target, causes in by_target.items()
    }


def _is_of(record: TrialRecord, benchmark: str, factors: str) -> bool:
    return record.benchmark == benchmark and record.factors.items() <= json.loads(factors).items()


def _losses(data: RunData) -> dict[str, tuple[int, int]]:
    """Lost and sent packets of each target over all trials of round trips."""
    rows = [row for row in data.values if row.benchmark == instruments.NET_RTT]
    sent = {(row.target, row.trial): row.value for row in rows if row.metric == "sent_count"}
    losses: dict[str, tuple[int, int]] = {}
    for row in rows:
        if row.metric == "loss_ratio" and '"both"' in row.factors:
            packets = round(sent.get((row.target, row.trial), 0))
            lost, total = losses.get(row.target, (0, 0))
            losses[row.target] = (lost + round(row.value * packets), total + packets)
    return losses


def _against_the_fleet(odd: OddValue, unit: str) -> str:
    value, typical = (units.format_value(number, unit) for number in (odd.value, odd.typical))
    times = ""
    if odd.typical > 0 and odd.value > 0:
        times = f", {units.format_number(odd.value / odd.typical)} times the median"
    return f"{value}{times} of the fleet ({typical})"


def _odd_facts(fingerprints: Mapping[str, Any]) -> Iterator[Outlier]:
    for name, title in _FACTS.items():
        known = {
            target: _countable(facts.fact(fingerprint, name))
            for target, fingerprint in fingerprints.items()
        }
        if name == "limits.cpu_quota_cpus":
            # No quota is a fact too, where the machine shows quotas at all.
            known = {target: known[target] or "none" for target in known}
        yield from _different(title, known)
    ports: dict[str, dict[str, Any]] = defaultdict(dict)
    for target, document in fingerprints.items():
        for port in facts.items(document, "nics.ports") or []:
            if label := facts.text(port, "name"):
                ports[label][target] = port
    for label, of in ports.items():
        # Ports of other names (bridges, virtual ones) are of that target alone.
        if len(of) < rule.MAJORITY * len(fingerprints):
            continue
        for fact, title in _PORT_FACTS.items():
            known = {target: facts.fact(port, fact) for target, port in of.items()}
            yield from _different(f"{title} of network port {label}", known, fact)


def _countable(fact: Any) -> Any:
    return len(fact) if isinstance(fact, list) else fact


def _different(title: str, known: Mapping[str, Any], fact: str = "") -> Iterator[Outlier]:
    usual, odd = rule.odd_facts(known)
    agreeing = sum(value == usual for value in known.values())
    unit = {"speed_bits_per_s": "bits_per_s"}.get(fact, "none")
    for target, value in odd.items():
        own_text, normal = (
            units.format_value(float(fact), unit)
            if unit != "none" and isinstance(fact, int | float)
            else wording.clean(fact)
            for fact in (value, usual)
        )
        yield Outlier(
            target,
            title,
            f"{target}: {title} is {own_text}; {agreeing} of {len(known)} targets have {normal}.",
        )


def _odd_clocks(offsets: Mapping[str, Sequence[float]]) -> Iterator[Outlier]:
    """Clocks that are certainly further from the median than the margin."""
    if len(offsets) < rule.FEWEST_OF_FACTS:
        return
    middle = float(np.median([offset for offset, _ in offsets.values()]))
    for target, (offset, bound) in offsets.items():
        away = offset - middle
        if abs(away) - bound > CLOCK_MARGIN_NS:
            ahead = "ahead of" if away > 0 else "behind"
            yield Outlier(
                target,
                "clock offset",
                f"{target}: its clock is {units.format_value(abs(away), 'ns')} "
                f"(± {units.format_value(bound, 'ns')}) {ahead} the fleet's median.",
                away,
                0.0,
            )
