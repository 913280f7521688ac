"""Shares of CPU models, their speed relative to each other, and the speed to expect.

Counts are of machines, not of trials: a machine is one draw however often it was measured. Speeds
are ratios to the slowest model, one benchmark at a time; there is no score over several.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from nephoscope.core.model import Better, Estimate
from nephoscope.core.records import dataclass
from nephoscope.stats.statistics import ratios
from nephoscope.stats.statistics.bootstrap import interval_of_draws
from nephoscope.stats.statistics.proportions import wilson
from nephoscope.stats.statistics.values import Array, Refused

SMALL_N = 30
"""Machines below which a census says that it is small.

A model that one machine in ten has is then missed altogether with 4 % (0.9 to the 30th).
"""

DRAWS = 20_000
"""Draws behind the interval of an expected speed: its ends move by less than 1 % of its width."""

Machines = Mapping[str, Mapping[str, Sequence[float]]]
"""machine -> run -> trial values of one benchmark's metric on one CPU model."""


@dataclass(frozen=True, slots=True)
class ModelShare:
    """Number of the machines that have a model. share: ratio with Wilson's interval, n machines."""

    model: str
    count: int
    share: Estimate


@dataclass(frozen=True, slots=True)
class RelativeSpeed:
    """Speed of a model relative to the slowest, in one benchmark; above 1 is faster.

    ratio: of geometric means over `unit` (machines, runs, trials; None where a source gives the
    ratio alone); the slowest has 1 without an interval, being what the others are held against.
    machines, runs, trials: how much stands behind it. note: what the interval does not cover.
    """

    model: str
    ratio: Estimate
    unit: str | None
    machines: int
    runs: int
    trials: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Chance:
    """The chance that a new machine is at least so fast (ratio to the slowest model)."""

    at_least: float
    models: tuple[str, ...]
    share: Estimate


@dataclass(frozen=True, slots=True)
class Expected:
    """Expectation of a new customer: the mean speed over the mix, and the probability of more.

    mean: of a ratio to the slowest model. left_out: models that were counted and never measured,
    without which the mix was taken.
    """

    mean: Estimate
    chances: tuple[Chance, ...]
    left_out: tuple[str, ...] = ()


def shares(counts: Mapping[str, int], *, confidence: float = 0.95) -> list[ModelShare]:
    """Each model's share of all machines, the most frequent first.

    counts: model -> machines, at least one in all. Raises Refused without any.
    """
    total = sum(counts.values())
    if total < 1:
        raise Refused("A share needs at least one machine.")
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [ModelShare(name, k, wilson(k, total, confidence=confidence)) for name, k in ordered]


def unseen(machines: int, *, confidence: float = 0.95) -> float:
    """Most that all the models may have together that none of `machines` showed; a ratio.

    The upper end of the exact one-sided interval of 0 in n: the chance to have missed a share s is
    (1 - s)^n. Source: Clopper and Pearson 1934.
    """
    if machines < 1:
        raise Refused("At least one machine is needed.")
    return float(1 - (1 - confidence) ** (1 / machines))


def speeds(
    values: Mapping[str, Machines], better: Better, *, confidence: float = 0.95
) -> list[RelativeSpeed]:
    """Each model's speed relative to the slowest, fastest first.

    values: model -> its machines -> their runs -> trial values, all above zero. The unit of
    repetition is the machine; a model with one machine falls back to its runs, with one run to its
    trials, and the note says that the interval is then that machine's. Of a metric where lower is
    better the ratio is inverted. Raises Refused for a direction that is neither, and for values
    that have no ratio.
    """
    if better is Better.NONE:
        raise Refused("A metric without a good direction has no speed.")
    sides = {model: _side(machines) for model, machines in values.items()}
    if not sides:
        raise Refused("A speed needs at least one model.")
    sign = 1.0 if better is Better.HIGHER else -1.0
    level = {model: sign * float(np.mean(np.log(side.values))) for model, side in sides.items()}
    slowest = min(level, key=lambda model: (level[model], model))
    speeds_by_model = [
        _speed(model, side, sides[slowest], level[model] - level[slowest], sign, confidence)
        if model != slowest
        else RelativeSpeed(model, _reference(side, confidence), side.unit, *side.counts, side.note)
        for model, side in sides.items()
    ]
    return sorted(speeds_by_model, key=lambda speed: (-speed.ratio.value, speed.model))


@dataclass(frozen=True, slots=True)
class _Side:
    """Values of one model, one per unit of repetition."""

    unit: str
    values: Array
    counts: tuple[int, int, int]
    note: str


def _side(machines: Machines) -> _Side:
    runs = [run for by_run in machines.values() for run in by_run.values()]
    counts = (len(machines), len(runs), sum(len(run) for run in runs))
    if not counts[2] or any(not math.isfinite(v) or v <= 0 for run in runs for v in run):
        raise Refused("A speed needs values above zero of each model.")
    if len(machines) > 1:
        # A machine counts once: its runs together make its one value.
        own = [
            float(np.mean([math.log(median(run)) for run in by_run.values()]))
            for by_run in machines.values()
        ]
        return _Side("machines", np.exp(np.array(own)), counts, "")
    if len(runs) > 1:
        note = "one machine: interval over its runs, not over machines of this model"
        return _Side("runs", np.array([median(run) for run in runs]), counts, note)
    note = "one run of one machine: interval within that run"
    return _Side("trials", np.array(runs[0], dtype=np.float64), counts, note)


def _reference(side: _Side, confidence: float) -> Estimate:
    method = "the slowest model: reference for the others"
    return Estimate(1.0, None, None, confidence, side.values.size, "none", method)


def _speed(
    model: str, side: _Side, slowest: _Side, level: float, sign: float, confidence: float
) -> RelativeSpeed:
    speed = ratios.log_welch(slowest.values**sign, side.values**sign, confidence)
    n = min(side.values.size, slowest.values.size)
    if speed is None:
        note = "no interval from a single value"
        method = "ratio of geometric means"
        speed = Estimate(math.exp(level), None, None, confidence, n, "none", method, note)
    else:
        method = f"ratio of geometric means over {side.unit}; Welch's t on logarithms"
        speed = replace(speed, unit="none", method=method)
    notes = [note for note in (side.note, speed.note.rstrip(".")) if note]
    if slowest.note:
        notes.append(f"of the slowest {slowest.note}")
    if speed.low is not None and speed.low <= 1:
        notes.append("not distinguishable from the slowest")
    return RelativeSpeed(model, speed, side.unit, *side.counts, "; ".join(notes))


def expected(
    counts: Mapping[str, int],
    known: Mapping[str, Estimate],
    *,
    at_least: Sequence[float] = (),
    confidence: float = 0.95,
    seed: int = 1,
) -> Expected:
    """Returns what the next machine will be like: mean speed over the mix, chances of each speed
    and more.

    counts: model -> machines. known: model -> speed relative to the slowest. at_least: further
    speeds to give the chance of. The interval of the mean comes from both: shares drawn from
    Dirichlet(count + 1/2), speeds from their intervals on the logarithm, independently; a speed
    without an interval is taken as exact, and the note says so. Raises Refused when no model that
    was counted was measured.
    """
    mix = {model: k for model, k in counts.items() if model in known and k > 0}
    left_out = tuple(sorted(model for model, k in counts.items() if k > 0 and model not in mix))
    total = sum(mix.values())
    if not total:
        raise Refused("None of the counted models was measured.")
    names = sorted(mix)
    k = np.array([mix[name] for name in names], dtype=np.float64)
    x = np.array([known[name].value for name in names])
    share, speed = draw_mix(k, [known[name] for name in names], seed=seed)
    value = float(k @ x / total)
    low, high = interval_of_draws((share * speed).sum(axis=1), value, confidence)
    exact = [n for n in names if known[n].low is None and known[n].value != 1]
    note = f"taken as exact: {', '.join(exact)}" if exact else ""
    method = f"mean over the mix; {DRAWS} draws of shares (Dirichlet) and speeds, seed {seed}"
    mean = Estimate(value, low, high, confidence, total, "none", method, note)
    if len(names) == 1:
        note = "one model: its own speed, no mix observed"
        mean = Estimate(value, None, None, confidence, total, "none", method, note)
    chances = []
    for level in sorted({*map(float, x), *at_least}):
        # A speed that was computed must count as reaching itself, whatever its last digit.
        fast = tuple(name for name in names if known[name].value >= level * (1 - 1e-9))
        share_of_fast = wilson(sum(mix[name] for name in fast), total, confidence=confidence)
        chances.append(Chance(level, fast, share_of_fast))
    return Expected(mean, tuple(chances), left_out)


def draw_mix(
    counts: Array, speeds: Sequence[Estimate], *, seed: int, draws: int = DRAWS
) -> tuple[Array, Array]:
    """Draws shares and speeds of the models of a mix, shape (draws, models) each.

    Shares are drawn from Dirichlet(count + 1/2), speeds from their intervals on the logarithm,
    independently; a speed without an interval is exact.
    """
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(counts + 0.5, draws)
    errors = [ratios.log_error(speed) for speed in speeds]
    logs = np.log([speed.value for speed in speeds])
    return share, np.exp(logs + rng.standard_normal(share.shape) * errors)
