"""A census: the CPU models behind an instance type, their speeds, and the speed to expect.

Its input are counts and speeds, wherever they come from: stored runs (observations.py), a file
(files.py) or a published study (studies/).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nephoscope.core.grouping import group_by
from nephoscope.core.model import Estimate
from nephoscope.features.census import analysis as judged
from nephoscope.features.census import files as census_files
from nephoscope.features.census.analysis import ModelShare, RelativeSpeed
from nephoscope.features.census.records import (
    IDENTITY,
    UNKNOWN_TYPE,
    Bench,
    Census,
    InstanceType,
    MachineCount,
    ModelValues,
    Observations,
    ShareGroup,
    StatedSpeed,
)
from nephoscope.results import names
from nephoscope.stats.statistics.values import Refused

_DIGITS = 2


def build(
    observations: Observations, *, confidence: float = 0.95, at_least: Sequence[float] = ()
) -> Census:
    """The census of these counts and speeds.

    at_least: further speeds whose chance is wanted. A type that was measured and not counted is
    there too, with no shares.
    """
    rows: tuple[MachineCount | ModelValues | StatedSpeed, ...]
    rows = (*observations.counts, *observations.measured, *observations.stated)
    types = dict.fromkeys(row.instance_type for row in rows)
    kinds = [_kind(name, observations, confidence, at_least) for name in types]
    if not observations.sources:  # of runs; a printed table keeps its order
        kinds.sort(key=lambda kind: (-kind.machines, kind.name))
    return Census(
        tuple(kinds),
        confidence,
        observations.runs,
        observations.sources,
        IDENTITY if observations.runs else None,
        (*observations.flags, *_clock_flags(observations.counts)),
        observations.left_out,
        tuple(_source_notes(observations.counts, observations.stated)),
        observations.hidden_settings,
    )


def of_files(
    files: Sequence[Path], *, confidence: float = 0.95, at_least: Sequence[float] = ()
) -> Census:
    """Returns the census of CSV files. Raises UsageError with file and line."""
    read = [census_files.read(file) for file in files]
    observations = Observations(
        tuple(count for file in read for count in file.counts),
        stated=tuple(speed for file in read for speed in file.stated),
        sources=tuple(source for file in read for source in file.sources),
        flags=tuple(flag for file in read for flag in file.flags),
    )
    return build(observations, confidence=confidence, at_least=at_least)


def _kind(
    name: str, observations: Observations, confidence: float, at_least: Sequence[float]
) -> InstanceType:
    counts = [count for count in observations.counts if count.instance_type == name]
    total = _total(counts)
    machines = sum(total.values())
    models = judged.shares(total, confidence=confidence) if machines else []
    if observations.sources:
        models.sort(key=lambda share: list(total).index(share.model))
    benches = (
        *_measured_benches(name, observations, confidence),
        *_stated_benches(name, observations, confidence),
    )
    uncounted = tuple(dict.fromkeys(c.model for c in counts if c.machines is None))
    by_hour = [(f"{c.hour:02d}", c) for c in counts if c.hour is not None]
    return InstanceType(
        name,
        machines,
        tuple(models),
        _groups([(c.zone, c) for c in counts if c.zone], confidence),
        _groups(sorted(by_hour, key=lambda named: named[0]), confidence),
        tuple(_with_expectation(bench, total, confidence, at_least) for bench in benches),
        {c.model: c.clock_hz for c in counts if c.clock_hz is not None},
        uncounted,
        judged.unseen(machines, confidence=confidence) if machines else None,
        tuple(_notes(name, models, machines)),
    )


def _total(counts: Iterable[MachineCount]) -> dict[str, int]:
    total: dict[str, int] = {}
    for count in counts:
        if count.machines is not None:
            total[count.model] = total.get(count.model, 0) + count.machines
    return {model: k for model, k in total.items() if k}


def _groups(named: Iterable[tuple[str, MachineCount]], confidence: float) -> tuple[ShareGroup, ...]:
    totals = {
        name: _total(count for _, count in own)
        for name, own in group_by(named, lambda pair: pair[0]).items()
    }
    return tuple(
        ShareGroup(name, sum(total.values()), tuple(judged.shares(total, confidence=confidence)))
        for name, total in totals.items()
        if total
    )


def _measured_benches(name: str, observations: Observations, confidence: float) -> Iterator[Bench]:
    for line in (line for line in observations.measured if line.instance_type == name):
        try:
            speeds = judged.speeds(line.values, line.better, confidence=confidence)
        except Refused:
            continue  # nothing measured of it is above zero: it has no speed
        factors = dict(line.factors)
        yield Bench(line.benchmark, line.metric, factors, "measured", tuple(speeds), None)


def _stated_benches(name: str, observations: Observations, confidence: float) -> Iterator[Bench]:
    stated = (
        stated_speed for stated_speed in observations.stated if stated_speed.instance_type == name
    )
    for benchmark, own in group_by(stated, lambda stated_speed: stated_speed.benchmark).items():
        method = (
            "as printed"
            if all(stated_speed.low is None for stated_speed in own)
            else "as the source gives it"
        )
        speeds = [
            RelativeSpeed(
                stated_speed.model,
                Estimate(
                    stated_speed.speed,
                    stated_speed.low,
                    stated_speed.high,
                    confidence,
                    stated_speed.n,
                    "none",
                    method,
                ),
                unit=None,
                machines=stated_speed.n,
                runs=0,
                trials=0,
                note=stated_speed.note,
            )
            for stated_speed in own
        ]
        speeds.sort(key=lambda speed: (-speed.ratio.value, speed.model))
        yield Bench(benchmark, None, {}, own[0].source, tuple(speeds), None)


def _with_expectation(
    bench: Bench, total: Mapping[str, int], confidence: float, at_least: Sequence[float]
) -> Bench:
    known = {speed.model: speed.ratio for speed in bench.speeds}
    seed = names.seed_of("census", bench.benchmark, *([bench.metric] if bench.metric else []))
    try:
        expected = judged.expected(
            total, known, at_least=at_least, confidence=confidence, seed=seed
        )
    except Refused as error:
        return replace(bench, refused=str(error))
    return replace(bench, expected=expected)


def _notes(name: str, models: Sequence[ModelShare], machines: int) -> Iterable[str]:
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


def _source_notes(counts: Sequence[MachineCount], stated: Sequence[StatedSpeed]) -> Iterable[str]:
    """Yields what the sources say of their rows, each sentence once with the rows that have it."""
    rows: dict[str, dict[str, None]] = {}
    for count in counts:
        for note in count.notes:
            rows.setdefault(note, {})[f"{count.model} of {count.instance_type}"] = None
    for stated_speed in stated:
        if stated_speed.note:
            rows.setdefault(stated_speed.note, {})[
                f"{stated_speed.benchmark} of {stated_speed.model}"
            ] = None
    for note, places in rows.items():
        yield f"{', '.join(places)}: {note}."


def _clock_flags(counts: Sequence[MachineCount]) -> Iterable[str]:
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
