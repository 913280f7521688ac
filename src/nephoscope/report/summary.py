"""Builds the summary: question and answer, machines, headline results and their precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from nephoscope import catalog
from nephoscope.catalog import MetricSpec
from nephoscope.catalog.meaning import Headline, SummarySettings
from nephoscope.core import units
from nephoscope.core.grouping import group_by
from nephoscope.core.model import BUSY_MACHINE, MetricResult, RunResult, factors_key
from nephoscope.core.naming import failure_text
from nephoscope.report import selection, wording
from nephoscope.report.blocks import Block, Section, Sentence, Tile, Tiles
from nephoscope.results import feature
from nephoscope.stats import facts

NO_INTERVAL = "no interval"
MAX_TILES = 8
"""Headline results of a page and of the terminal."""
MAX_MACHINES = 4
MAX_ANSWERS = 4
MAX_BUSY = 2
MAX_TARGETS = 8
"""Targets whose headline results are shown one by one; of more, how far apart they are."""


class Choice(NamedTuple):
    """A headline result of the summary: the metric and the setting to show."""

    benchmark: str
    metric: str
    headline: Headline


@cache
def choices() -> tuple[Choice, ...]:
    """Returns the headline results that benchmarks declare for a summary, in their order."""
    return tuple(
        Choice(spec.id, _shown_metric(metric, metric.in_summary), metric.in_summary)
        for spec in catalog.load().benchmarks.values()
        for metric in spec.metrics
        if metric.in_summary is not None
    )


def _shown_metric(metric: MetricSpec, headline: Headline) -> str:
    """Returns the name of the metric or, of a histogram, that of its statistic."""
    if not headline.statistic:
        return metric.id
    ending = f"_{metric.unit}"
    return f"{metric.id.removesuffix(ending)}_{headline.statistic}{ending}"


def build(result: RunResult) -> Section:
    """Returns question and answer, the machines, the headline results and their coverage."""
    blocks = opening(result, MAX_MACHINES, MAX_ANSWERS, MAX_TILES)
    return Section("summary", "Summary", (*blocks, Sentence(coverage(result))))


def opening(result: RunResult, machines: int, sentences: int, figures: int) -> list[Block]:
    """Returns the question of the plan with its answer, what the machines are, headline results.

    machines: largest number of different machines to describe; sentences: of the answer.
    """
    blocks: list[Block] = []
    if result.run.question and not selection.is_built_in(result):
        blocks.append(Sentence(f"Question: {wording.clean(result.run.question)}"))
    every = answers(result)
    stated = every[:sentences]
    if len(every) > sentences:
        stated[-1] += f" {len(every) - sentences} more in the full report."
    blocks += [Sentence(answer, lead=True) for answer in stated]
    blocks += [Sentence(text, lead=not every) for text in described(result, machines)]
    if not blocks:
        blocks.append(Sentence("This run has no measurements yet.", lead=True))
    blocks[:0] = [Sentence(text, lead=True) for text in _reservations(result)]
    blocks += [Sentence(text, lead=True) for text in _busy_sentences(result)]
    return [*blocks, *_headline(result, figures)]


def answers(result: RunResult) -> list[str]:
    """Returns the sentences that answer the question of the run."""
    return [
        wording.clean(sentence)
        for entry, _ in feature.contributing(result.parts)
        if entry.answer
        for sentence in feature.load(entry.answer)(result)
    ]


def caveats(result: RunResult) -> list[str]:
    """Returns why there are none, only a part of them, or those of a busy machine."""
    return [*_reservations(result), *_busy_sentences(result)]


def _reservations(result: RunResult) -> list[str]:
    return [text for text in (_failure(result), *wording.caveats(result.run)) if text]


def _failure(result: RunResult) -> str:
    """Returns why a run without any valid trial has none; '' for others."""
    reasons = [reason for trial in result.invalid for reason in trial.reasons]
    if result.run.trials.valid or not reasons:
        return ""
    return f"No valid trial: {wording.clean(failure_text(reasons[0]))}"


def _busy_sentences(result: RunResult) -> list[str]:
    """Returns the sentences on busy machines; of many the first, and how many more."""
    sentences = [
        wording.clean(sentence)
        for sentence in dict.fromkeys(
            finding.sentence for finding in result.findings if finding.id == BUSY_MACHINE
        )
    ]
    more = len(sentences) - MAX_BUSY
    if more < 2:
        return sentences
    return [*sentences[:MAX_BUSY], f"{more} more targets were measured on busy machines."]


def _headline(result: RunResult, figures: int) -> list[Block]:
    """Returns the headline results, those without an interval apart from the others."""
    tiles = headline_tiles(result, figures)
    sure = tuple(tile for tile in tiles if tile.interval != NO_INTERVAL)
    single = [
        f"{tile.label}{f' ({tile.setting})' if tile.setting else ''} {tile.value} "
        f"({wording.plural(int(tile.n), 'trial')})"
        for tile in tiles
        if tile.interval == NO_INTERVAL
    ]
    blocks: list[Block] = [Tiles(sure)] if sure else []
    if single:
        blocks.append(
            Sentence(
                "Too few trials for an interval, so these values may be far from the usual "
                f"ones: {'; '.join(single)}."
            )
        )
    return blocks


def described(result: RunResult, limit: int) -> list[str]:
    """Returns a sentence for each different machine; alike machines share one."""
    every = selection.target_names(result)
    simulated = [target for target in every if facts.is_simulated(result.fingerprints.get(target))]
    real = (target for target in every if target not in simulated)
    alike = group_by(real, lambda target: _description(result.fingerprints.get(target)))
    out = [_simulated(result, simulated)] if simulated else []
    out += [_what_it_is(result, targets, text) for text, targets in alike.items()]
    if len(out) > limit:
        rest = wording.plural(len(out) - limit, "other machine")
        out = [*out[:limit], f"The section Environment describes {rest}."]
    return out


def _simulated(result: RunResult, targets: Sequence[str]) -> str:
    known = result.fingerprints[targets[0]]
    version = wording.clean(facts.text(known, "simulated.version") or "of an unknown version")
    names = wording.joined(wording.clean(target) for target in targets)
    verb = "is simulated" if len(targets) == 1 else "are simulated"
    if len(selection.target_names(result)) == 1:
        names = "This"
    return (
        f"{names} {verb} (nephoscope-sim {version}), not measured. The results are only as "
        "valid as the scenario."
    )


def _what_it_is(result: RunResult, targets: Sequence[str], description: str) -> str:
    """Returns the sentence on machines that have this description."""
    if not description:
        what = "has no fingerprint, so its hardware is unknown."
        more = "have no fingerprints, so their hardware is unknown."
    else:
        what, more = f"is {description}", f"are alike, each {description}"
    names = [wording.clean(target) for target in targets]
    if names == ["local"] and len(selection.target_names(result)) == 1:
        names = ["This machine"]
    if len(names) == 1:
        return f"{names[0]} {what}"
    return f"{wording.named(names)} {more}"


def _service(known: Mapping[str, Any]) -> str:
    """Returns what a service is, as the end of a sentence."""
    stated = {name: wording.clean(str(text)) for name, text in known.items() if text}
    provider = f" of {stated['provider']}" if "provider" in stated else ""
    region = f" in {stated['region']}" if "region" in stated else ""
    return f"a service ({stated['product']}{provider}{region}) at {stated['url']}."


def _description(known: Any) -> str:
    """Returns what a machine is, as the end of a sentence; '' without a fingerprint."""
    if not known:
        return ""
    if (service := facts.service(known)) is not None:
        return _service(service)
    cpus = facts.items(known, "topology.allowed_cpus") or facts.items(known, "topology.online_cpus")
    count = wording.plural(len(cpus), "CPU") if cpus else "an unknown number of CPUs"
    model = wording.clean(facts.text(known, "cpu.model") or "of an unknown model")
    memory = facts.number(known, "memory.total_bytes")
    size = "an unknown amount" if memory is None else units.format_value(memory, "bytes")
    text = f"{_kind(known)} with {count} ({model}) and {size} of memory"
    system, kernel = facts.text(known, "os.pretty_name"), facts.text(known, "kernel.release")
    software = [wording.clean(system)] if system else []
    software += [f"kernel {wording.clean(kernel)}"] if kernel else []
    text += f", running {' on '.join(software)}." if software else "."
    quota = facts.number(known, "limits.cpu_quota_cpus")
    if quota is not None:
        text += f" A cgroup quota limits it to {units.format_number(quota)} CPUs."
    agree = facts.fact(known, "cpu.agree")
    if agree is False:
        text += " Its cpuid instruction and /proc/cpuinfo name different CPUs."
    return text


def _kind(known: Any) -> str:
    virtual = facts.is_virtual(known)
    if virtual is None:
        return "a machine"
    if not virtual:
        return "a physical machine"
    hypervisor = facts.text(known, "hypervisor.name")
    return "a virtual machine" + (f" under {wording.clean(hypervisor)}" if hypervisor else "")


def headline_tiles(result: RunResult, limit: int) -> list[Tile]:
    """Returns the figures of a feature that has its own, else those of the metrics."""
    for entry, _ in feature.contributing(result.parts):
        if entry.headline and (own := feature.load(entry.headline)(result)):
            return list(own[:limit])
    several = len(selection.target_names(result)) > 1
    if len(selection.target_names(result)) > MAX_TARGETS:
        return _spread_tiles(result, limit)
    return [
        _tile(f"{wording.clean(metric.target)}: {label}" if several else label, setting, metric)
        for label, setting, metric in headline_figures(result, limit)
    ]


def _spread_tiles(result: RunResult, limit: int) -> list[Tile]:
    """Returns the lowest, middle and highest target of each headline result."""
    by_setting = group_by(
        result.metrics,
        lambda metric: (metric.benchmark, metric.metric, factors_key(metric.factors)),
    )
    # The target with the most results shows what there is.
    by_target = group_by(result.metrics, lambda metric: metric.target)
    richest = max(by_target.values(), key=len, default=[])
    out = []
    for label, setting, figure in choose(richest)[: max(1, limit // len(_PLACES))]:
        own = by_setting[figure.benchmark, figure.metric, factors_key(figure.factors)]
        own = sorted(own, key=lambda metric: metric.estimate.value)
        for word, place in _PLACES.items():
            metric = own[round(place * (len(own) - 1))]
            out.append(
                _tile(
                    f"{label}, {word} of {len(own)}: {wording.clean(metric.target)}",
                    setting,
                    metric,
                )
            )
    return out


_PLACES = {"lowest": 0.0, "middle": 0.5, "highest": 1.0}


def headline_figures(result: RunResult, limit: int) -> list[tuple[str, str, MetricResult]]:
    """Returns label, setting and figure of the headline results, the same ones of each target."""
    targets = selection.target_names(result)
    per_target = max(1, limit // max(1, len(targets)))
    out: list[tuple[str, str, MetricResult]] = []
    for target in targets:
        own = [metric for metric in result.metrics if metric.target == target]
        out += choose(own)[:per_target]
    return out[:limit]


def choose(metrics: Sequence[MetricResult]) -> list[tuple[str, str, MetricResult]]:
    """Label, setting and figure, by the declared choices; then other headline metrics.

    These are all of a single benchmark, else one of each where there would be fewer than three.
    """
    out: list[tuple[str, str, MetricResult]] = []
    for benchmark, name, headline in choices():
        candidates = [
            metric for metric in metrics if (metric.benchmark, metric.metric) == (benchmark, name)
        ]
        for factor, level in headline.prefer.items():
            candidates = _narrowed(candidates, factor, level)
        if headline.settings is SummarySettings.WHOLE:
            candidates = sorted(candidates, key=lambda metric: len(metric.factors))
        if candidates:
            setting = wording.factors_text(candidates[0].factors, leave_out=headline.without)
            out.append((headline.title, setting, candidates[0]))
        for metric in candidates[1:] if headline.settings is SummarySettings.EACH else ():
            out.append((headline.title, wording.factors_text(metric.factors), metric))
    used = {metric.benchmark for _, _, metric in out}
    chosen = {id(metric) for _, _, metric in out}
    is_single = len({metric.benchmark for metric in metrics}) == 1
    for metric in metrics:
        is_new = id(metric) not in chosen if is_single else metric.benchmark not in used
        if metric.headline and is_new and (is_single or len(out) < 3):
            used.add(metric.benchmark)
            label = wording.full_name(metric.benchmark, metric.metric)
            out.append((label, wording.factors_text(metric.factors), metric))
    return out


def _narrowed(candidates: list[MetricResult], name: str, level: Any) -> list[MetricResult]:
    if level in ("maximum", "minimum"):
        levels = [
            x for metric in candidates if (x := selection.numeric_level(metric, name)) is not None
        ]
        if not levels:
            return candidates
        wanted: Any = max(levels) if level == "maximum" else min(levels)
        return [m for m in candidates if selection.numeric_level(m, name) == wanted]
    return [metric for metric in candidates if metric.factors.get(name) == level] or candidates


def _tile(label: str, setting: str, metric: MetricResult) -> Tile:
    estimate = metric.estimate
    has_interval = estimate.low is not None or estimate.high is not None
    return Tile(
        label,
        setting,
        wording.value_text(estimate),
        wording.interval_text(estimate) if has_interval else NO_INTERVAL,
        str(estimate.n),
        f"CV {wording.consistency_text(metric.consistency)}"
        if metric.consistency.robust_cv is not None
        else "",
    )


def next_step(result: RunResult) -> str:
    """Returns the next step of the gravest finding that has one."""
    if _failure(result):
        return "Next step: remove the cause of the failure, and repeat the command."
    steps = [finding.next_step for finding in result.findings if finding.next_step]
    if steps:
        return f"Next step: {wording.clean(steps[0])}"
    return "Next step: measure a second machine, then run `nephoscope compare A B`."


def coverage(result: RunResult) -> str:
    """Returns how much was measured, how precisely, and what was excluded."""
    if not result.metrics:
        return "No metric has a value; see Excluded trials."
    text = wording.precision_text(result.run.precision) or (
        f"{wording.plural(len(result.metrics), 'metric')}, each with its interval."
    )
    if result.invalid:
        text += f" {wording.plural(len(result.invalid), 'trial')} excluded."
    return text
