"""The saving by instance selection: closed forms, with the uncertainty of the mix in intervals.

Instances of one type and price differ in speed. A customer ends an instance that is not of a kept
model and launches another one (trial and failure). The mean over the draws of fleets is a closed
form, which the simulator has too, beside the spread over fleets (crates/sim/src/selection); here
it is computed for many draws of a mix that a census knows only from a sample.

Symbols: p share, x speed relative to the reference, E mean of x over the mix; n instances of
speed 1, h hours, f price of an hour, t billed hours of a launch that is ended again.

Sources: Zhuang (2012), section 5.2; DeGroot, Optimal Statistical Decisions (1970), chapter 13, for
the rule of optimal stopping.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nephoscope.core.errors import UsageError
from nephoscope.core.format_versions import SCENARIO
from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.features.census.analysis import DRAWS, draw_mix
from nephoscope.features.cost.mix import REST, Mix, MixModel, exact, number
from nephoscope.features.simulation.records import Surface
from nephoscope.results import names
from nephoscope.stats.statistics.values import Array

_REST_VALUES = "a speed above 0 or `normalise`"


@dataclass(frozen=True, slots=True)
class Job:
    """Work of `instances` of speed 1 for `hours`; trial_h: billed hours of a rejected launch."""

    instances: int
    hours: float
    price_per_h: float
    trial_h: float
    currency: str = "USD"


class Saving(NamedTuple):
    """Saving by selection, for each draw of the mix; an infinite break_even_h never pays."""

    saving: Array
    ratio: Array
    break_even_h: Array
    search_cost: Array


def published(share: Array, speed: Array, is_kept: Array, job: Job) -> Saving:
    """Trial and failure as Zhuang (2012) prints it: n f (h/E - h/x - t/p).

    Shares are not divided by their sum, so that a missing share counts as speed zero; the launches
    that are kept are charged too, and n instances are launched where n/x suffice.
    """
    mean = (share * speed).sum(axis=-1)
    chosen, kept_speed = _chosen(share, speed, is_kept)
    return _saving(job, 1 / mean - 1 / kept_speed, job.trial_h / chosen, mean)


def corrected(share: Array, speed: Array, is_kept: Array, job: Job) -> Saving:
    """With shares that sum to 1, n/x instances, and only rejected launches charged.

    n f (h/E - h/x - t (1/p - 1)/x).
    """
    share = share / share.sum(axis=-1, keepdims=True)
    mean = (share * speed).sum(axis=-1)
    chosen, kept_speed = _chosen(share, speed, is_kept)
    extra_h = job.trial_h * (1 / chosen - 1) / kept_speed
    return _saving(job, 1 / mean - 1 / kept_speed, extra_h, mean)


def _chosen(share: Array, speed: Array, is_kept: Array) -> tuple[Array, Array]:
    """Probability of the kept models together, and their mean speed."""
    chosen = (share * is_kept).sum(axis=-1)
    return chosen, (share * speed * is_kept).sum(axis=-1) / chosen


def _saving(job: Job, per_h: Array, extra_h: Array, mean: Array) -> Saving:
    per_hour = job.instances * job.price_per_h
    saving = per_hour * (job.hours * per_h - extra_h)
    with np.errstate(divide="ignore", invalid="ignore"):
        break_even = np.where(per_h > 1e-12, extra_h / per_h, math.inf)
    return Saving(saving, saving * mean / (per_hour * job.hours), break_even, per_hour * extra_h)


@dataclass(frozen=True, slots=True)
class SavingForm:
    """The saving by one formula. break_even_h: hours of a job from which on selection saves; null
    if it never does. search_cost: of the launches that the formula charges for the search."""

    formula: str
    saving: Estimate
    saving_ratio: Estimate
    break_even_h: Estimate | None
    search_cost: Estimate


@dataclass(frozen=True, slots=True)
class KeptModels:
    """One set of kept models. cost: of the job with a search until each instance is of the set,
    each having an equal part of the work."""

    models: tuple[str, ...]
    cost: float


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """Optimal stopping. rejected_above_h: hours of speed 1 left on an instance of this model from
    which on another launch pays; null if it never does."""

    model: str
    rejected_above_h: float | None


@dataclass(frozen=True, slots=True)
class SimulatedFleets:
    """Fleets that the simulator drew with one strategy. costs and saving: means over fleets; low,
    high of the ratio: 5th and 95th percentile of fleets."""

    strategy: str
    fleets: int
    cost: float
    baseline_cost: float
    saving_ratio: float
    low_ratio: float
    high_ratio: float
    losing_ratio: float


@dataclass(frozen=True, slots=True)
class SavingAnalysis:
    """The saving by selection from a mix of models.

    selected_models: those that are kept. mean_speed: E. equal_parts_factor: mean of 1/x, cost of
    accepting every instance where each has an equal part of the work, relative to speed 1; with
    dynamic sharing it is 1/E. rest: what was assumed of launches whose speed is unknown.
    explanation: how the published figure becomes the corrected one. source: of the mix.
    """

    source: str
    mix: tuple[MixModel, ...]
    selected_models: tuple[str, ...]
    rest: str
    job: Job
    mean_speed: Estimate
    equal_parts_factor: Estimate
    forms: tuple[SavingForm, ...]
    explanation: tuple[str, ...]
    stopping: tuple[StoppingRule, ...]
    kept_models: tuple[KeptModels, ...]
    fleets: tuple[SimulatedFleets, ...]
    surface: Surface
    notes: tuple[str, ...] = ()


def completed(mix: Mix, rest: str | None) -> list[MixModel]:
    """Returns the models with a decision on the launches whose speed is unknown.

    rest: `normalise`, a speed, or None, which refuses a mix whose shares do not sum to one. Shares
    stay parts of all launches; the formulas decide whether they are divided by their sum.
    """
    total = sum(model.share for model in mix.models)
    if total > 1 + 1e-6:
        raise UsageError(
            f"The shares sum to {100 * total:.4g} %, more than all launches.", "Correct the shares."
        )
    speed = None if rest in (None, "normalise") else number("--rest", str(rest), _REST_VALUES)
    missing = 1 - total
    if missing < 1e-6:
        return list(mix.models)
    if rest is None:
        raise UsageError(
            f"The shares of models with a speed sum to {100 * total:.4g} %, not to 100 %.",
            "Use --rest normalise to divide them by their sum, or --rest SPEED for the others.",
        )
    if speed is None:
        return list(mix.models)
    count = None if mix.machines is None else round(missing * mix.machines)
    return [*mix.models, MixModel(REST, missing, count, exact(speed))]


def analyse(
    mix: Mix,
    job: Job,
    *,
    rest: str | None = None,
    keep: Sequence[str] = (),
    confidence: float = 0.95,
    draws: int = DRAWS,
) -> SavingAnalysis:
    """Returns the saving with its intervals. rest: as of `completed`. keep: models to keep; the
    fastest where empty."""
    full = completed(mix, rest)
    share = np.array([model.share for model in full])
    speed = np.array([model.speed.value for model in full])
    is_kept = _kept_models(full, keep)
    drawn_share, drawn_speed = _drawn(full, share, draws)
    n = sum(model.machines or 0 for model in full)

    def estimate(value: float, drawn: Array, unit: str) -> Estimate:
        tail = (1 - confidence) / 2
        # An infinite break-even has no neighbours to interpolate between.
        ends = np.quantile(drawn, [tail, 1 - tail], method="nearest")
        low, high = (float(end) if math.isfinite(end) else None for end in ends)
        note = "" if low is not None and high is not None else "in some draws selection never pays"
        method = f"closed form; {draws} draws of shares (Dirichlet) and speeds"
        if low == high:
            low, high, method = None, None, "closed form of exact shares and speeds"
        return Estimate(value, low, high, confidence, n, unit, method, note)

    def form(name: str, formula: Any, scale: Array, drawn_scale: Array) -> SavingForm:
        value = formula(share / scale, speed, is_kept, job)
        drawn = formula(drawn_share / drawn_scale, drawn_speed, is_kept, job)
        hours = float(value.break_even_h)
        return SavingForm(
            name,
            estimate(float(value.saving), drawn.saving, job.currency),
            estimate(float(value.ratio), drawn.ratio, "ratio"),
            estimate(hours, drawn.break_even_h, "h") if math.isfinite(hours) else None,
            estimate(float(value.search_cost), drawn.search_cost, job.currency),
        )

    whole = share.sum()
    # A draw sums to 1; the published formula takes as much of it as was printed.
    forms = (
        form("published", published, np.array(1.0), np.array(1 / whole)),
        form("published, shares normalised", published, whole, np.array(1.0)),
        form("corrected", corrected, np.array(1.0), np.array(1.0)),
    )
    normal = share / whole
    return SavingAnalysis(
        mix.source,
        tuple(full),
        tuple(model.model for model, keeps in zip(full, is_kept, strict=True) if keeps),
        rest or "none",
        job,
        estimate(float(normal @ speed), (drawn_share * drawn_speed).sum(axis=1), "none"),
        estimate(float(normal @ (1 / speed)), (drawn_share / drawn_speed).sum(axis=1), "none"),
        forms,
        tuple(_explanation(forms, whole, job)),
        tuple(_stopping(full, normal, speed, job)),
        tuple(_sets(full, normal, speed, job)),
        (),
        surface(),
        tuple(_notes(full, n)),
    )


def _kept_models(mix: Sequence[MixModel], keep: Sequence[str]) -> Array:
    known = [model.model for model in mix]
    for name in keep:
        if name not in known:
            raise UsageError(f"--keep: there is no model '{name}'.", f"Models: {', '.join(known)}.")
    fastest = max(model.speed.value for model in mix)
    chosen = [model.model in keep if keep else model.speed.value == fastest for model in mix]
    return np.array(chosen, dtype=np.float64)


def _drawn(mix: Sequence[MixModel], share: Array, draws: int) -> tuple[Array, Array]:
    """Draws of shares, each summing to 1, and of speeds; shares without counts are exact."""
    seed = names.seed_of("saving", *(model.model for model in mix))
    counts = np.array([model.machines or 0 for model in mix], dtype=np.float64)
    drawn_share, drawn_speed = draw_mix(
        counts, [model.speed for model in mix], seed=seed, draws=draws
    )
    if any(model.machines is None for model in mix):
        drawn_share = np.broadcast_to(share / share.sum(), drawn_share.shape)
    return drawn_share, drawn_speed


def _explanation(forms: Sequence[SavingForm], whole: float, job: Job) -> list[str]:
    first, second, third = (form.saving.value for form in forms)
    sentences = [
        f"The formula as published gives {first:,.2f} {job.currency}.",
        f"It charges the launches that are kept, and launches {job.instances} fast instances where "
        f"fewer do the work: without that the saving is {third:,.2f}, {third - second:+,.2f}.",
    ]
    if abs(whole - 1) > 1e-6:
        sentences.insert(
            1,
            f"Its shares sum to {100 * whole:.4g} %, so that the rest counts as speed zero: "
            f"divided by their sum they give {second:,.2f}, {second - first:+,.2f}.",
        )
    return sentences


def _stopping(mix: Sequence[MixModel], share: Array, speed: Array, job: Job) -> list[StoppingRule]:
    """Keep speed x while W sum p max(0, 1/x - 1/x_i) <= t, for W hours of speed 1 left."""
    rules = []
    for model, own in zip(mix, speed, strict=True):
        gain = float((share * np.maximum(0, 1 / own - 1 / speed)).sum())
        rules.append(StoppingRule(model.model, job.trial_h / gain if gain > 1e-12 else None))
    return rules


def _sets(mix: Sequence[MixModel], share: Array, speed: Array, job: Job) -> list[KeptModels]:
    """Costs of keeping all models, all but the slowest, and so on."""
    order = np.argsort(-speed, kind="stable")
    sets = []
    for last in range(len(order), 0, -1):
        picks = order[:last]
        if last < len(order) and speed[order[last - 1]] == speed[order[last]]:
            continue
        probability = share[picks].sum()
        hours = job.trial_h * (1 / probability - 1)
        hours += job.hours * float((share[picks] / speed[picks]).sum() / probability)
        cost = job.instances * job.price_per_h * float(hours)
        sets.append(KeptModels(tuple(mix[i].model for i in picks), cost))
    return sets


def _notes(mix: Sequence[MixModel], n: int) -> list[str]:
    notes = []
    if any(model.machines is None for model in mix):
        notes.append("The shares are taken as exact; with --machines they have an uncertainty.")
    elif n < 30:
        notes.append(f"The mix is known from {n} machines only.")
    exact = [model.model for model in mix if model.speed.low is None and model.speed.value != 1]
    if exact:
        notes.append(f"Speeds without an interval are taken as exact: {', '.join(exact)}.")
    notes.append(
        "Launches are taken as independent. A provider often gives a freed slot out again: "
        "simulate that with `nephoscope simulate selection` and `correlation`."
    )
    return notes


def surface() -> Surface:
    """Saving in a job without end if a share p of instances is x times as fast (Figure 5.1)."""
    p = np.arange(1, 20) / 20
    x = 1 + np.arange(37) / 4
    share = np.stack(np.broadcast_arrays(p[:, None], 1 - p[:, None]), axis=-1)
    speed = np.stack(np.broadcast_arrays(x[None, :], np.ones((1, x.size))), axis=-1)
    ratio = corrected(share, speed, np.array([1.0, 0.0]), Job(1, 1.0, 1.0, 0.0)).ratio
    return Surface(tuple(p.tolist()), tuple(x.tolist()), tuple(map(tuple, ratio.tolist())))


def scenario_of(analysis: SavingAnalysis, strategy: str, fleets: int) -> dict[str, Any]:
    """Returns the simulator's scenario of this mix and job."""
    job = analysis.job
    trial_s = 3600 * job.trial_h
    return {
        "version": SCENARIO.version,
        "name": strategy,
        "types": {
            model.model: {"share": model.share, "speed": model.speed.value}
            for model in analysis.mix
        },
        "instances": job.instances,
        "hours": job.hours,
        "price_usd_per_h": job.price_per_h,
        # What a rejected launch costs is known already; the rest is billed to the second.
        "billing": {"step_s": 1, "minimum_s": 0},
        "trial_s": trial_s,
        "strategy": strategy,
        "keep": list(analysis.selected_models) if strategy == "trial_and_failure" else [],
        "fleets": fleets,
    }
