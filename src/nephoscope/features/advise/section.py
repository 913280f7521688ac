"""Advice as a section, for the terminal and for the page that `-o` writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nephoscope.core import units
from nephoscope.core.grouping import group_by
from nephoscope.core.model import Estimate
from nephoscope.features.advise.forecast import Forecast, Prediction
from nephoscope.features.advise.prediction import LEAST_MACHINES, BackTest
from nephoscope.features.advise.result import Advice
from nephoscope.features.advise.service_levels import MINIMA, ServiceLevel
from nephoscope.features.advise.telemetry import Telemetry
from nephoscope.features.market.prediction_section import prediction_section
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Heading, Section, Sentence, Table, items
from nephoscope.report.columns import fact_table, interval, number, table, text


def section(advice: Advice) -> Section:
    """Returns the whole advice."""
    return Section("advice", f"Advice on {wording.clean(advice.name)}", tuple(_blocks(advice)))


def _blocks(advice: Advice) -> Iterator[Block]:
    if advice.answers or advice.telemetry is not None:
        yield from _application(advice)
    if advice.published is not None:
        yield Heading("Prediction from published measurements")
        yield from prediction_section(advice.published).blocks
    if advice.forecast is not None:
        yield from _forecast(advice.forecast)
        if advice.back_test is not None:
            yield from _back_test(advice.back_test, advice.forecast.counted)


def _application(advice: Advice) -> Iterator[Block]:
    yield Sentence(_lead(advice), lead=True)
    yield from items(advice.notes, "notice")
    yield Heading("Classes")
    yield table(
        advice.classes,
        text("class", lambda entry: entry.name),
        number("score", lambda row: "unknown" if row.score is None else f"{row.score:.2f}"),
        text("attached", lambda entry: "yes" if entry.attached else ""),
        text("reason", lambda entry: entry.reason),
    )
    yield from items(advice.facts)
    yield from _levels(advice)
    if advice.telemetry is not None:
        yield from _telemetry(advice.telemetry)
    yield Heading("Benchmarks to run")
    yield table(
        advice.benchmarks,
        text("command", lambda entry: entry.command),
        text("tells", lambda entry: entry.reason),
    )


def _lead(advice: Advice) -> str:
    attached = [entry.name for entry in advice.classes if entry.attached]
    further = [name for name in attached if name != advice.primary]
    unknown = [entry.name for entry in advice.classes if entry.score is None]
    sentence = f"{wording.clean(advice.name)} is {advice.primary}"
    sentence += f", and {wording.joined(further)}." if further else "."
    if unknown:
        sentence += f" Not known: whether it is {wording.joined(unknown)}."
    if advice.resource:
        sentence += f" Dominant resource: {advice.resource}."
    return sentence


def _telemetry(telemetry: Telemetry) -> Iterator[Block]:
    yield Heading("Observed process")
    yield Sentence(
        f"{wording.clean(telemetry.process)}, for {telemetry.seconds:.1f} s: "
        f"{telemetry.dominant}. {telemetry.sentence}"
    )
    yield table(
        telemetry.shares,
        text("resource", lambda entry: entry.resource),
        *interval("share", lambda entry: entry.share),
        text("meaning", lambda entry: entry.meaning),
    )
    yield fact_table(_counters(telemetry))
    yield from items(telemetry.notes, "notice")


def _counters(telemetry: Telemetry) -> Iterator[tuple[str, str]]:
    def rate(value: float | None, unit: str) -> str:
        return "hidden" if value is None else units.format_value(value, unit)

    yield "CPUs in use, mean", wording.estimate_text(telemetry.cpus)
    yield "time waiting for a CPU", wording.estimate_text(telemetry.cpu_wait)
    yield "storage", rate(telemetry.storage_bytes_per_s, "bytes_per_s")
    yield "sent to other hosts", rate(telemetry.sent_bits_per_s, "bits_per_s")
    yield "received from other hosts", rate(telemetry.received_bits_per_s, "bits_per_s")
    yield "over loopback", rate(telemetry.loopback_bits_per_s, "bits_per_s")
    if telemetry.rtt_ns is not None:
        yield "round-trip time, median", units.format_value(telemetry.rtt_ns, "ns")
    yield "memory (RSS), maximum", wording.bytes_text(telemetry.rss_bytes)
    yield "major page faults", units.format_value(telemetry.major_faults_per_s, "per_s")
    if telemetry.hardware_hidden:
        yield "hardware counters", f"hidden ({telemetry.hardware_hidden})"
    if telemetry.instructions_per_cycle is not None:
        yield "instructions per cycle", f"{telemetry.instructions_per_cycle:.2f}"
    if telemetry.misses_per_1000_instructions is not None:
        misses = f"{telemetry.misses_per_1000_instructions:.2f}"
        yield "cache misses per 1000 instructions", misses
    counts = (telemetry.processes, telemetry.threads, telemetry.connections)
    yield "processes, threads, connections", ", ".join(map(str, counts))
    for name, share in sorted(telemetry.pressure.items()):
        if name.endswith("some"):
            yield f"pressure of the machine, {name}", units.format_value(share, "ratio", 2)


def _forecast(forecast: Forecast) -> Iterator[Block]:
    if forecast.predictions:
        counted = forecast.counted
        yield Heading(f"Predicted performance of a new {counted}")
        yield Sentence(
            f"From stored runs. {100 * forecast.confidence:g} % of new {counted}s of the platform "
            "lie in the interval, if they are drawn as the measured ones were."
        )
    few = []
    for name, entries in group_by(forecast.predictions, lambda entry: entry.platform).items():
        predicted = [entry for entry in entries if entry.estimate.low is not None]
        if predicted:
            yield _platform_table(name, predicted, forecast.counted)
        else:
            size = wording.plural(max(entry.machines for entry in entries), forecast.counted)
            few.append(
                f"{name}: too few {forecast.counted}s for a prediction ({size}, {_age(entries)})."
            )
    if forecast.times:
        yield Heading("Predicted run time of the observed process")
        yield Sentence(
            f"Relative to {wording.clean(forecast.times[0].reference)}, where it was observed. The "
            "interval covers the differences between machines, not the error of the shares."
        )
        yield table(
            forecast.times,
            text("platform", lambda entry: entry.platform),
            number("run time", lambda entry: entry.estimate),
            number("interval", lambda entry: _interval(entry.estimate)),
            number(f"{forecast.counted}s", lambda entry: entry.estimate.n),
        )
    yield from items([*few, *forecast.notes])


def _platform_table(name: str, predictions: Sequence[Prediction], counted: str) -> Table:
    """Returns the predictions of a platform: of each metric the first and the last setting."""
    by_metric = group_by(
        predictions, lambda prediction: wording.full_name(prediction.benchmark, prediction.metric)
    )
    rows: list[tuple[str, Prediction]] = []
    for metric, entries in by_metric.items():
        ordered = sorted(entries, key=_levels_in_order)
        chosen = ordered if len(ordered) < 3 else (ordered[0], ordered[-1])
        rows += [(metric, entry) for entry in chosen]
    left = len(predictions) - len(rows)
    more = f"; {wording.plural(left, 'further setting')} with --json" if left else ""
    return table(
        rows,
        text("metric", lambda row: row[0]),
        text("setting", lambda row: wording.factors_text(row[1].factors)),
        number("predicted", lambda row: row[1].estimate),
        number("interval", lambda row: _interval(row[1].estimate)),
        number(f"{counted}s", lambda row: row[1].machines),
        number("age", lambda row: _age([row[1]])),
        caption=f"{wording.clean(name)}{more}:",
    )


def _levels_in_order(entry: Prediction) -> list[tuple[str, bool, float, str]]:
    """Returns a key that puts 2 before 10, and numbers before texts."""
    key = []
    for name, level in sorted(entry.factors.items()):
        is_number = isinstance(level, int | float)
        key.append((name, not is_number, float(level) if is_number else 0.0, str(level)))
    return key


def _age(entries: Sequence[Prediction]) -> str:
    newest = min(entry.newest_days for entry in entries)
    oldest = max(entry.oldest_days for entry in entries)
    days = f"{newest:.0f}" if round(newest) == round(oldest) else f"{newest:.0f} to {oldest:.0f}"
    return f"{days} d old"


def _interval(estimate: Estimate) -> str:
    return wording.interval_text(estimate) if estimate.low is not None else "too few"


def _back_test(tested: BackTest, counted: str) -> Iterator[Block]:
    yield Heading("Back-test")
    if tested.coverage is None or tested.error is None:
        yield Sentence(
            f"No platform has more than {LEAST_MACHINES} {counted}s: none of {tested.skipped} "
            "values can be predicted from the others."
        )
        return
    yield Sentence(
        f"{tested.predictions} values of {wording.plural(tested.machines, counted)}, each "
        f"predicted from the other {counted}s of its platform; {tested.skipped} values of "
        f"platforms with too few {counted}s are left out."
    )
    rows = [
        (f"inside the interval of {100 * tested.confidence:g} %", tested.coverage),
        ("relative error, median", tested.error),
    ]
    if tested.error_any_platform is not None:
        rows.append(("relative error without knowing the platform", tested.error_any_platform))
    yield fact_table((name, wording.estimate_text(estimate)) for name, estimate in rows)
    if tested.coverage.high is not None and tested.coverage.high < tested.confidence:
        warning = (
            "Fewer values than promised lie in the intervals: do not use them. The stored "
            f"{counted}s were not drawn alike."
        )
        yield from items([warning], "warning")


def _levels(advice: Advice) -> Iterator[Block]:
    if not advice.levels:
        return
    yield Heading("Service levels to ask for")
    yield table(
        sorted(advice.levels, key=lambda level: level.quantity),
        text("quantity", lambda level: level.quantity),
        number("target", lambda level: _limit(level, level.target)),
        number("acceptable", lambda level: _limit(level, level.maximum)),
        text("strictest", lambda level: "ask" if level.strictest else ""),
        text("of", lambda row: ", ".join(filter(None, (row.statistic, row.note))), roomy=True),
        text("source", lambda level: level.source),
    )
    references = {level.source: level.reference for level in advice.levels if level.reference}
    sources = (f"{name}: {reference}" for name, reference in references.items())
    yield from items(sources, folded="Sources")


def _limit(level: ServiceLevel, value: float | None) -> str:
    if value is None:
        return ""
    sign = "≥" if level.quantity in MINIMA else "≤"
    if level.quantity == "availability":
        return f"{sign} {100 * value:.7g} %"
    divisor, label = units.scale_of(level.unit, value)
    return f"{sign} {value / divisor:.4g} {label}"
