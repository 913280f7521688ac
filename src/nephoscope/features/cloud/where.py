"""Where a job runs best whose data are at one place: transfer and computation, time and cost.

The data cross once, at the goodput that was measured; they are not read while they come. A place
that computes faster can be worth the way to it, also where traffic is billed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.core.reading.sentences import did_you_mean
from nephoscope.features.cloud.distance_records import CloudDistances, PlaceDistance, PlaceSpeed
from nephoscope.stats.statistics.ratios import quotient

_SUM = "sum of independent estimates; distances to the bounds added in squares"


@dataclass(frozen=True, slots=True)
class PlacedJob:
    """A job. data_bytes: that it reads; data_at: where they are, empty for each place in turn.
    compute_s: place -> time that it computes there, where that is known; elsewhere it follows from
    measured speeds. per_hour, per_gib_out, per_gib_zones: place -> price, where the user knows
    it."""

    data_bytes: int
    data_at: str
    compute_s: Mapping[str, float]
    benchmark: str = ""
    per_hour: Mapping[str, float] | None = None
    per_gib_out: Mapping[str, float] | None = None
    per_gib_zones: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class WhereRow:
    """One way to run the job. transfer_s, time_s: None where the goodput of that way was not
    measured; cost: None where a price is unknown. missing: why something is None."""

    run_at: str
    data_at: str
    transfer_s: Estimate | None
    compute_s: Estimate
    time_s: Estimate | None
    cost: Estimate | None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class WhereToRun:
    """All ways to run a job, fastest first for each place of the data; the verdicts in words."""

    verdicts: tuple[str, ...]
    rows: tuple[WhereRow, ...]
    currency: str
    data_bytes: int
    notes: tuple[str, ...] = ()


def decide(distances: CloudDistances, job: PlacedJob) -> WhereToRun:
    """Returns where to run a job. Raises UsageError for places that were not measured, and for a
    computation whose time is unknown."""
    for place in (*([job.data_at] if job.data_at else ()), *job.compute_s):
        _check_place(place, distances)
    for prices in (job.per_hour or {}, job.per_gib_out or {}, job.per_gib_zones or {}):
        for place in prices:
            _check_place(place, distances)
    compute = {place: _compute_s(distances, job, place) for place in distances.places}
    rows: list[WhereRow] = []
    verdicts: list[str] = []
    currency = next((price.currency for price in distances.prices), "USD")
    for data_at in [job.data_at] if job.data_at else distances.places:
        own = [_row(distances, job, place, data_at, compute[place]) for place in distances.places]
        own.sort(key=lambda row: row.time_s.value if row.time_s is not None else math.inf)
        verdicts += _verdicts(own, data_at, currency)
        rows += own
    return WhereToRun(
        tuple(verdicts), tuple(rows), currency, job.data_bytes, tuple(_notes(distances, rows))
    )


def _check_place(place: str, distances: CloudDistances) -> None:
    if place not in distances.places:
        raise UsageError(
            f"The run has no place '{place}'{did_you_mean(place, distances.places)}.",
            f"It has: {', '.join(distances.places)}.",
        )


def _compute_s(distances: CloudDistances, job: PlacedJob, place: str) -> Estimate:
    if place in job.compute_s:
        return _exact(job.compute_s[place], "s")
    speeds = _speeds(distances, job.benchmark)
    known = [each for each in job.compute_s if each in speeds]
    if place not in speeds or not known:
        raise UsageError(
            f"How long the job computes at {place} is unknown.",
            f"Give --compute TIME@{place}, or measure a benchmark at each place: `nephoscope cloud "
            "distances … --benchmark NAME`.",
        )
    there, here = speeds[known[0]], speeds[place]
    over, under = ([here], [there]) if here.is_time else ([there], [here])
    return quotient(
        [each.estimate for each in over],
        [each.estimate for each in under],
        factor=job.compute_s[known[0]],
        unit="s",
    )


def _speeds(distances: CloudDistances, benchmark: str) -> dict[str, PlaceSpeed]:
    """Returns the speeds by one benchmark. Raises UsageError where it has to be named."""
    names = list(dict.fromkeys(speed.benchmark for speed in distances.speeds))
    if benchmark and benchmark not in names:
        raise UsageError(
            f"The run has no speeds by '{benchmark}'{did_you_mean(benchmark, names)}.",
            f"It has: {', '.join(names) or 'none'}.",
        )
    if len(names) > 1 and not benchmark:
        raise UsageError(
            f"The run has speeds by {len(names)} benchmarks: {', '.join(names)}.",
            "Choose the one that is like the job: --by NAME.",
        )
    chosen = benchmark or "".join(names)
    speeds: dict[str, PlaceSpeed] = {}
    for speed in distances.speeds:
        if speed.benchmark == chosen:
            speeds.setdefault(speed.place, speed)
    return speeds


def _row(
    distances: CloudDistances, job: PlacedJob, run_at: str, data_at: str, compute: Estimate
) -> WhereRow:
    if run_at == data_at:
        transfer: Estimate | None = _exact(0.0, "s")
        row = WhereRow(run_at, data_at, transfer, compute, compute, None)
        return _with_cost(distances, job, row)
    pair, goodput = _way(distances, data_at, run_at)
    if goodput is None:
        why = f"The goodput from {data_at} to {run_at} was not measured."
        return WhereRow(run_at, data_at, None, compute, None, None, why)
    job_bytes = _exact(float(job.data_bytes), "bytes")
    transfer = quotient([job_bytes], [goodput], unit="s")
    row = WhereRow(run_at, data_at, transfer, compute, total(transfer, compute), None)
    return _with_cost(distances, job, row, pair)


def _way(
    distances: CloudDistances, source: str, destination: str
) -> tuple[PlaceDistance | None, Estimate | None]:
    for pair in distances.pairs:
        if (pair.place_a, pair.place_b) == (source, destination):
            return pair, pair.goodput
        if (pair.place_b, pair.place_a) == (source, destination):
            return pair, pair.goodput_back
    return None, None


def _with_cost(
    distances: CloudDistances, job: PlacedJob, row: WhereRow, pair: PlaceDistance | None = None
) -> WhereRow:
    """Returns a row with its cost: the machine for the whole time, and the traffic between a pair
    of places."""
    listed = {price.place: price for price in distances.prices}
    run, data = listed.get(row.run_at), listed.get(row.data_at)
    per_hour = (job.per_hour or {}).get(row.run_at, run.per_hour if run else None)
    if pair is None:
        per_gib: float | None = 0.0
    elif pair.way == "public":
        per_gib = (job.per_gib_out or {}).get(row.data_at, data.per_gib_out if data else None)
    else:
        per_gib = (job.per_gib_zones or {}).get(row.data_at, data.per_gib_zones if data else None)
    if per_hour is None:
        return replace(row, missing=f"The price of an hour at {row.run_at} is unknown.")
    if per_gib is None:
        way = f"from {row.data_at} to {row.run_at}"
        return replace(row, missing=f"The price of traffic {way} is unknown.")
    assert row.time_s is not None
    traffic = job.data_bytes / 2**30 * per_gib
    return replace(row, cost=_mapped(row.time_s, per_hour / 3600, traffic))


def _mapped(estimate: Estimate, factor: float, more: float) -> Estimate:
    def to(value: float | None) -> float | None:
        return None if value is None else value * factor + more

    return replace(
        estimate,
        value=estimate.value * factor + more,
        low=to(estimate.low),
        high=to(estimate.high),
        unit="none",
    )


def _exact(value: float, unit: str) -> Estimate:
    return Estimate(value, None, None, 0.95, 0, unit, "given, without an error")


def total(first: Estimate, second: Estimate, sign: int = 1) -> Estimate:
    """Returns the sum of two independent estimates, or with sign -1 their difference; one without
    an interval is exact."""
    below = above = 0.0
    for factor, part in ((1, first), (sign, second)):
        if part.low is None or part.high is None:
            continue
        distances = [part.value - part.low, part.high - part.value]
        below = math.hypot(below, distances[factor < 0])
        above = math.hypot(above, distances[factor > 0])
    value = first.value + sign * second.value
    estimated = [part for part in (first, second) if part.low is not None]
    if not estimated:
        return replace(first, value=value, low=None, high=None)
    n = min(part.n for part in estimated)
    ends = value - below, value + above
    return Estimate(value, *ends, estimated[0].confidence, n, first.unit, _SUM)


def _verdicts(rows: Sequence[WhereRow], data_at: str, currency: str) -> Iterator[str]:
    """Yields the verdict on time and that on cost. rows: of one place of the data, fastest first.

    Without an interval on either side, what is smaller is said to be so as a single figure.
    """
    timed = [(row.time_s, row) for row in rows if row.time_s is not None]
    if not timed:
        yield f"Data at {data_at}: no way to run the job was measured."
        return
    yield _verdict(timed, data_at, "fastest", as_time)
    priced = sorted(
        ((row.cost, row) for row in rows if row.cost is not None), key=lambda pair: pair[0].value
    )
    if priced:
        yield _verdict(priced, data_at, "cheapest", lambda each: as_money(each, currency))


def _verdict(
    ordered: Sequence[tuple[Estimate, WhereRow]],
    data_at: str,
    word: str,
    words: Callable[[Estimate], str],
) -> str:
    (best, row), *rest = ordered
    where = (
        f"at {row.run_at}, where the data are"
        if row.run_at == data_at
        else (f"at {row.run_at}, with the data kept at {data_at}")
    )
    head = f"Data at {data_at}: {word} {where}: {words(best)}"
    if not rest:
        return f"{head}; nothing else could be compared."
    following, runner_up = rest[0]
    gap = total(following, best, -1)
    name = f"{runner_up.run_at}{' (where the data are)' if runner_up.run_at == data_at else ''}"
    if gap.low is not None and gap.low <= 0:
        return f"{head}; {name} cannot be told from it: {words(following)}."
    return f"{head}; next {name}: {words(following)}, {words(gap)} more."


def as_time(estimate: Estimate) -> str:
    """Returns a time in seconds for people, with its interval: '9.98 h [5.4, 10.8]'."""
    factor, unit = next(
        (divisor, word)
        for limit_s, divisor, word in ((120, 1, "s"), (7200, 60, "min"), (math.inf, 3600, "h"))
        if abs(estimate.value) < limit_s
    )
    return _with_interval(estimate, lambda value: units.format_number(value / factor), f" {unit}")


def as_money(estimate: Estimate, currency: str) -> str:
    """Returns an amount for people, with its interval."""
    return _with_interval(
        estimate, lambda value: f"{value:.2f}" if value >= 1 else f"{value:.2g}", f" {currency}"
    )


def _with_interval(estimate: Estimate, words: Callable[[float], str], unit: str) -> str:
    text = f"{words(estimate.value)}{unit}"
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} [{words(estimate.low)}, {words(estimate.high)}]"


def _notes(distances: CloudDistances, rows: Sequence[WhereRow]) -> Iterator[str]:
    yield from dict.fromkeys(row.missing for row in rows if row.missing)
    if any(pair.way == "private" for pair in distances.pairs):
        yield "Traffic between zones of one region is counted as free; some clouds bill it."
    yield (
        "Data cross once, as fast as in the trials of this run; a longer transfer may be slower or "
        "faster. Computing begins when all have come."
    )
