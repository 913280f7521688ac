"""A census: the CPU models behind an instance type, their speeds, and the speed to expect.

Its input are counts and speeds, wherever they come from: stored runs (sightings.py), a file
(files.py) or a published study (studies/).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from nephoscope.analysis.statistics.values import Refused
from nephoscope.census import analysis as judged
from nephoscope.census import files as census_files
from nephoscope.census.analysis import Expected, Share, Speed
from nephoscope.census.records import (
    UNKNOWN_TYPE,
    Bench,
    Census,
    Count,
    Group,
    Kind,
    Measured,
    StatedSpeed,
)
from nephoscope.model import Estimate
from nephoscope.results import names

_DIGITS = 2


def build(
    counts: Sequence[Count],
    measured: Sequence[Measured] = (),
    stated: Sequence[StatedSpeed] = (),
    *,
    confidence: float = 0.95,
    at_least: Sequence[float] = (),
    runs: int = 0,
    sources: Sequence[str] = (),
    identity: str | None = None,
    flags: Sequence[str] = (),
    left_out: Sequence[str] = (),
) -> Census:
    """The census of these counts and speeds.

    at_least: further speeds whose chance is wanted. A type that was measured and not counted is
    there too, with no shares.
    """
    types = dict.fromkeys(
        [*(c.instance_type for c in counts), *(m.instance_type for m in measured)]
        + [t.instance_type for t in stated]
    )
    kinds = [
        _kind(
            name,
            [c for c in counts if c.instance_type == name],
            [m for m in measured if m.instance_type == name],
            [t for t in stated if t.instance_type == name],
            confidence,
            at_least,
            as_printed=bool(sources),
        )
        for name in types
    ]
    if not sources:  # of runs; a printed table keeps its order
        kinds.sort(key=lambda kind: (-kind.machines, kind.name))
    return Census(
        tuple(kinds),
        confidence,
        runs,
        tuple(sources),
        identity,
        (*flags, *_clock_flags(counts)),
        tuple(left_out),
        tuple(_source_notes(counts, stated)),
    )


def of_files(
    files: Sequence[Path], *, confidence: float = 0.95, at_least: Sequence[float] = ()
) -> Census:
    """Returns the census of CSV files. Raises UsageError with file and line."""
    read = [census_files.read(file) for file in files]
    return build(
        [count for file in read for count in file.counts],
        stated=[speed for file in read for speed in file.speeds],
        confidence=confidence,
        at_least=at_least,
        sources=[str(file) for file in files],
        flags=[flag for file in read for flag in file.flags],
    )


def _kind(
    name: str,
    counts: Sequence[Count],
    measured: Sequence[Measured],
    stated: Sequence[StatedSpeed],
    confidence: float,
    at_least: Sequence[float],
    *,
    as_printed: bool,
) -> Kind:
    total = _total(counts)
    machines = sum(total.values())
    models = judged.shares(total, confidence=confidence) if machines else []
    if as_printed:
        models.sort(key=lambda share: list(total).index(share.model))
    benches = [_bench(one, total, confidence, at_least) for one in measured]
    benches += _stated_benches(stated, total, confidence, at_least)
    uncounted = tuple(dict.fromkeys(c.model for c in counts if c.machines is None))
    return Kind(
        name,
        machines,
        tuple(models),
        _groups([(c.zone, c) for c in counts if c.zone], confidence),
        _groups(
            sorted(
                ((f"{c.hour:02d}", c) for c in counts if c.hour is not None),
                key=lambda named: named[0],
            ),
            confidence,
        ),
        tuple(bench for bench in benches if bench is not None),
        {c.model: c.clock_hz for c in counts if c.clock_hz is not None},
        uncounted,
        judged.unseen(machines, confidence=confidence) if machines else None,
        tuple(_notes(name, models, machines)),
    )


def _total(counts: Iterable[Count]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in counts:
        if one.machines is not None:
            total[one.model] = total.get(one.model, 0) + one.machines
    return {model: k for model, k in total.items() if k}


def _groups(named: Iterable[tuple[str, Count]], confidence: float) -> tuple[Group, ...]:
    by_name: dict[str, list[Count]] = {}
    for name, count in named:
        by_name.setdefault(name, []).append(count)
    out = []
    for name, counts in by_name.items():
        if total := _total(counts):
            models = tuple(judged.shares(total, confidence=confidence))
            out.append(Group(name, sum(total.values()), models))
    return tuple(out)


def _bench(
    measured: Measured, total: Mapping[str, int], confidence: float, at_least: Sequence[float]
) -> Bench | None:
    try:
        estimates = judged.speeds(measured.values, measured.better, confidence=confidence)
    except Refused:
        return None  # nothing measured of it is above zero: it has no speed
    known = {speed.model: speed.ratio for speed in estimates}
    expected, why = _expected(
        total, known, confidence, at_least, (measured.benchmark, measured.metric)
    )
    factors = dict(measured.factors)
    return Bench(
        measured.benchmark, measured.metric, factors, "measured", tuple(estimates), expected, why
    )


def _stated_benches(
    stated: Sequence[StatedSpeed],
    total: Mapping[str, int],
    confidence: float,
    at_least: Sequence[float],
) -> list[Bench | None]:
    out: list[Bench | None] = []
    for benchmark in dict.fromkeys(one.benchmark for one in stated):
        own = [one for one in stated if one.benchmark == benchmark]
        method = "as printed" if all(one.low is None for one in own) else "as the source gives it"
        speeds = [
            Speed(
                one.model,
                Estimate(one.speed, one.low, one.high, confidence, one.n, "none", method),
                None,
                one.n,
                0,
                0,
                one.note,
            )
            for one in own
        ]
        speeds.sort(key=lambda speed: (-speed.ratio.value, speed.model))
        known = {speed.model: speed.ratio for speed in speeds}
        expected, why = _expected(total, known, confidence, at_least, (benchmark,))
        out.append(Bench(benchmark, None, {}, own[0].source, tuple(speeds), expected, why))
    return out


def _expected(
    total: Mapping[str, int],
    known: Mapping[str, Estimate],
    confidence: float,
    at_least: Sequence[float],
    seeds: Sequence[str],
) -> tuple[Expected | None, str | None]:
    try:
        seed = names.seed_of("census", *seeds)
        expectation = judged.expected(
            total, known, at_least=at_least, confidence=confidence, seed=seed
        )
    except Refused as error:
        return None, str(error)
    return expectation, None


def _notes(name: str, models: Sequence[Share], machines: int) -> Iterable[str]:
    if 0 < machines < judged.SMALL_N:
        most = 100 * judged.unseen(machines)
        yield (
            f"Small sample: with {machines} machine{'s' * (machines != 1)}, unseen models may "
            f"make up to {most:.0f} % of all machines."
        )
    for model in models:
        if model.count == 1 and machines >= judged.SMALL_N:
            assert model.share.low is not None
            assert model.share.high is not None
            yield (
                f"{model.model} was seen once in {machines} machines; its share may be anything "
                f"from {100 * model.share.low:.1f} to {100 * model.share.high:.1f} %."
            )
    if name == UNKNOWN_TYPE and machines:
        yield (
            "unknown instance type: run `nephoscope census --target TARGET --metadata` inside "
            "a cloud, or add counts with --import."
        )


def _source_notes(counts: Sequence[Count], stated: Sequence[StatedSpeed]) -> Iterable[str]:
    """Yields what the sources say of their rows, each sentence once with the rows that have it."""
    rows: dict[str, dict[str, None]] = {}
    for count in counts:
        for note in count.notes:
            rows.setdefault(note, {})[f"{count.model} of {count.instance_type}"] = None
    for one in stated:
        if one.note:
            rows.setdefault(one.note, {})[f"{one.benchmark} of {one.model}"] = None
    for note, places in rows.items():
        yield f"{', '.join(places)}: {note}."


def _clock_flags(counts: Sequence[Count]) -> Iterable[str]:
    """One sentence for each model that is told with several clocks."""
    clocks: dict[str, dict[float, list[str]]] = {}
    for count in counts:
        if count.clock_hz is not None:
            places = clocks.setdefault(count.model, {}).setdefault(
                round(count.clock_hz / 1e9, _DIGITS), []
            )
            if count.instance_type not in places:
                places.append(count.instance_type)
    for model, by_clock in clocks.items():
        # A frequency that was read at run time moves; only a source's own rows contradict it.
        if len(by_clock) > 1:
            rates = "; ".join(
                f"{clock:g} GHz in {' and '.join(places)}" for clock, places in by_clock.items()
            )
            yield f"{model} is listed with {len(by_clock)} clock rates, so one is wrong: {rates}."
