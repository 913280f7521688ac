"""What a plan will take before it is run: trials, time and money, and how that was worked out.

A trial's time is that of earlier trials with the same parameters where there are some; else what
its parameters say (durations, time for each point) and an allowance, which is a guess and called
one.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from nephoscope.catalog import BenchmarkSpec, Catalog
from nephoscope.core import units
from nephoscope.core.errors import PlanError
from nephoscope.core.model import Setting, factors_key
from nephoscope.core.reading.sentences import Place
from nephoscope.core.records import dataclass
from nephoscope.measure.lab.platform_table import TABLE
from nephoscope.measure.plans.design.baselines import Pair
from nephoscope.measure.plans.design.order import baseline_of
from nephoscope.measure.plans.model import Plan
from nephoscope.measure.plans.service_use import Use, use_of
from nephoscope.measure.targets.kinds import KINDS
from nephoscope.measure.targets.kinds.record import TargetRecord

EarlierRuns = Mapping[tuple[str, str], Sequence[float]]
"""(benchmark, parameters as `earlier_runs_key` tells them) -> seconds that earlier trials took."""

DAY_S = 86_400.0
WEEK_S = 7 * DAY_S

MEASURED = "earlier trials"
GUESSED = "a guess from the parameters"

UNKNOWN_S = 1.0
"""A benchmark whose parameters say nothing of its time."""
POINTS = 100
"""Points of a sweep whose number of points follows from the machine."""


@dataclass(frozen=True, slots=True)
class TrialTime:
    """Seconds of one trial, and how that is known: MEASURED or GUESSED."""

    seconds: float
    how: str


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """Time and cost of a run. Seconds are those of the run, side by side where it is concurrent.

    settings: setting index -> time of one trial. least, most: of trials, warm-up included.
    round_s: one round of all alternatives. least_s, most_s: until the least, or the greatest
    number of repetitions. money_*: in `currency`; None where no target has a price.
    money_used_least: of money_least, what requests to services and their transfer cost.
    """

    settings: Mapping[int, TrialTime]
    alternatives: int
    trials_least: int
    trials_most: int
    rounds_least: int
    rounds_most: int
    round_s: float
    least_s: float
    most_s: float
    money_used_least: float
    money_least: float | None
    money_most: float | None
    currency: str

    @property
    def guessed(self) -> int:
        """Settings whose time is a guess."""
        return sum(setting.how == GUESSED for setting in self.settings.values())

    def to_json(self) -> dict[str, Any]:
        """The object of `run --dry-run --json`."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name != "settings"}
        return {**plain, "guessed_settings": self.guessed}


def earlier_runs_key(spec: BenchmarkSpec, params: Mapping[str, Any]) -> tuple[str, str]:
    """The key of `EarlierRuns`: the benchmark, and every parameter with its default filled in."""
    full = {param.id: params.get(param.id, param.default) for param in spec.params}
    return spec.id, factors_key(full)


def trial_time(
    spec: BenchmarkSpec, params: Mapping[str, Any], kind: str, earlier_runs: EarlierRuns
) -> TrialTime:
    """The time of one trial of a benchmark on a target of that kind, without loads and hooks."""
    earlier = earlier_runs.get(earlier_runs_key(spec, params), ())
    if earlier:
        return TrialTime(statistics.median(earlier), MEASURED)
    return TrialTime(declared_s(spec, params) + KINDS[kind].trial_overhead_s, GUESSED)


def declared_s(spec: BenchmarkSpec, params: Mapping[str, Any]) -> float:
    """Seconds that the parameters ask for; UNKNOWN_S where none of them is a time."""
    total_ns = 0.0
    known = False
    for param in spec.params:
        value = params.get(param.id, param.default)
        if param.unit != "ns" or not isinstance(value, int | float) or isinstance(value, bool):
            continue
        if param.id in ("duration_ns", "wait_ns", "warmup_ns"):
            total_ns, known = total_ns + value, True
        elif param.id.startswith("time_per_point"):
            total_ns, known = total_ns + value * _points(spec, params), True
    return total_ns / 1e9 if known else UNKNOWN_S


def _points(spec: BenchmarkSpec, params: Mapping[str, Any]) -> int:
    """Points of a sweep: one for each item of the longest list that is given."""
    lists = [
        params.get(param.id, param.default) for param in spec.params if param.type == "int_list"
    ]
    return max((len(points) for points in lists if points), default=POINTS)


def estimate(
    plan: Plan,
    settings: Sequence[Setting],
    catalog: Catalog,
    earlier_runs: EarlierRuns | None = None,
) -> RunEstimate:
    """Trials, time and money of a plan whose settings these are."""
    targets = {target.name: target for target in plan.targets}
    times = {
        setting.index: _setting_time(setting, targets, catalog, earlier_runs or {})
        for setting in settings
    }
    rounds = {setting.index: plan.repeat_of(setting.entry) for setting in settings}
    warm = {setting.index: _warm_up(plan, setting) for setting in settings}
    least = _trials(plan, settings, {index: repeat.min for index, repeat in rounds.items()}, warm)
    most = _trials(plan, settings, {index: repeat.max for index, repeat in rounds.items()}, warm)
    boots_s = _boots_s(plan, settings)
    least_s = _side_by_side(plan, targets, settings, times, least) + boots_s
    most_s = _side_by_side(plan, targets, settings, times, most) + boots_s
    if plan.budget_s is not None:
        least_s, most_s = min(least_s, plan.budget_s), min(most_s, plan.budget_s)
    priced = any(target.is_priced for target in plan.targets)
    use = use_of(plan, settings, catalog.benchmark)
    once = _trials(plan, settings, dict.fromkeys(rounds, 1), {})
    return RunEstimate(
        settings=times,
        alternatives=sum(len(setting.targets) for setting in settings),
        trials_least=sum(least.values()),
        trials_most=sum(most.values()),
        rounds_least=max(repeat.min + warm[index] for index, repeat in rounds.items()),
        rounds_most=max(repeat.max + warm[index] for index, repeat in rounds.items()),
        round_s=_side_by_side(plan, targets, settings, times, once),
        least_s=least_s,
        most_s=most_s,
        money_used_least=_used(use, least),
        money_least=money_spent(plan, least_s) + _used(use, least) if priced else None,
        money_most=money_spent(plan, most_s) + _used(use, most) if priced else None,
        currency=plan.money.currency if plan.money else "USD",
    )


def _used(use: Use, trials: Mapping[Pair, int]) -> float:
    return sum(cost * trials[pair] for pair, cost in use.items())


def money_spent(plan: Plan, seconds: float) -> float:
    """Returns what so many seconds of all the plan's targets cost; each is paid from begin to
    end."""
    return sum(target.per_hour or 0.0 for target in plan.targets) * seconds / 3600


def refuse_too_long(plan: Plan, estimated: RunEstimate, place: Place = lambda _: "") -> None:
    """PlanError for a plan whose least schedule is too long or too dear to be meant."""
    whole_s = estimated.rounds_least * estimated.round_s
    arithmetic = (
        f"{estimated.rounds_least} rounds x {estimated.alternatives} alternatives x "
        f"{estimated.round_s / max(1, estimated.alternatives):.3g} s are {long_time(whole_s)}"
    )
    too_long, hint = "", "If that is meant, bound it with --budget, or with `budget` in the plan."
    if whole_s > WEEK_S:
        too_long, hint = "a week", "Vary fewer factors, shorten the trials, or lower repeat.min."
    elif whole_s > DAY_S and plan.budget_s is None:
        too_long = "a day"
    if too_long:
        raise PlanError(
            f"{place(('benchmarks',))}the least schedule of this plan lasts more than {too_long}: "
            f"{arithmetic}.",
            hint,
        )
    money = plan.money
    if (
        money is not None
        and estimated.money_least is not None
        and estimated.money_least > money.limit
    ):
        hourly = money_spent(plan, 3600)
        used = estimated.money_used_least
        use = f", and {used:.2f} {money.currency} for requests and transfer" if used > 0 else ""
        raise PlanError(
            f"{place(('money', 'limit'))}the least schedule costs {estimated.money_least:.2f} "
            f"{money.currency}, more than the limit of {money.limit:g}: "
            f"{long_time(estimated.least_s)} x {hourly:g} {money.currency} an hour{use}.",
            "Raise the limit, or measure less.",
        )


def long_time(seconds: float) -> str:
    """A time for people, in days where it is long."""
    if seconds < 2 * DAY_S:
        return units.format_duration(seconds)
    return f"{seconds / DAY_S:.1f} days"


def _setting_time(
    setting: Setting,
    targets: Mapping[str, TargetRecord],
    catalog: Catalog,
    earlier_runs: EarlierRuns,
) -> TrialTime:
    """One trial with its loads settling and its hooks."""
    kind = targets[setting.client_of(setting.targets[0])].kind
    spec = catalog.benchmark(setting.benchmark)
    own = trial_time(spec, setting.params, kind, earlier_runs)
    further = max((load.settle_s for load in setting.backgrounds), default=0.0)
    if own.how == GUESSED:
        further += 2 * KINDS[kind].trial_overhead_s * len(setting.backgrounds)
    for hook in (*setting.before, *setting.after):
        further += trial_time(
            catalog.benchmark(hook.benchmark), hook.params, kind, earlier_runs
        ).seconds
    return TrialTime(own.seconds + further, own.how)


def _warm_up(plan: Plan, setting: Setting) -> int:
    """Rounds of warm-up; each boot of a nested design is warmed up by itself."""
    repeat, nest = plan.repeat_of(setting.entry), plan.design.nest
    warm = plan.warmup if repeat.max > 1 else 0
    return warm * (nest.boots if nest is not None else 1)


def _trials(
    plan: Plan,
    settings: Sequence[Setting],
    rounds: Mapping[int, int],
    warm: Mapping[int, int],
) -> dict[Pair, int]:
    """Trials of each alternative in so many rounds of its setting, after so many of warm-up.

    A quiet one goes on as long as one around which it stands, with a trial more for each of them.
    """
    once = {
        (setting.index, name): rounds[setting.index]
        for setting in settings
        for name in setting.targets
    }
    trials = dict(once)
    for noisy, calm in baseline_of(plan, settings).items():
        trials[calm] += once[noisy] + max(0, once[noisy] - once[calm])
        once[calm] = max(once[calm], once[noisy])
    return {pair: number + warm.get(pair[0], 0) for pair, number in trials.items()}


def _side_by_side(
    plan: Plan,
    targets: Mapping[str, TargetRecord],
    settings: Sequence[Setting],
    times: Mapping[int, TrialTime],
    trials: Mapping[Pair, int],
) -> float:
    """Seconds of all trials, one after the other; on distinct machines at once if concurrent."""
    busy: dict[str, float] = {}
    for setting in settings:
        # Targets that run together take the time of one.
        for name in setting.targets[:1] if setting.together else setting.targets:
            seconds = times[setting.index].seconds * trials[setting.index, name]
            # A client of several servers measures them one after the other.
            runs_on = targets[setting.client_of(name)].traits().machine
            machine = runs_on if plan.concurrent else ""
            busy[machine] = busy.get(machine, 0.0) + seconds
    return max((sum(busy.values()) / plan.most_at_once, *busy.values()), default=0.0)


def _boots_s(plan: Plan, settings: Sequence[Setting]) -> float:
    """Making and booting the lab's hosts, as often as the design asks."""
    if not isinstance(plan.lab, dict):
        return 0.0
    hosts = plan.lab.get("hosts")
    specs = hosts.values() if isinstance(hosts, dict) else ()
    platforms = [str((spec or {}).get("platform", "bare")) for spec in specs]
    once = sum(map(_boot_s, platforms))
    nest, changes_s = plan.design.nest, _changes_s(plan, settings)
    times = nest.boots if nest is not None and not changes_s else 1
    return once * times + changes_s


def _boot_s(platform: str) -> float:
    entry = TABLE.get(platform)
    return entry.boot_s if entry else 0.0


def _changes_s(plan: Plan, settings: Sequence[Setting]) -> float:
    """Hosts that change their platform are made anew for each block of each round, or cell."""
    total, nest = 0.0, plan.design.nest
    for path in {path for s in settings for path in s.conditions if path.endswith(".platform")}:
        levels = {str(s.conditions[path]) for s in settings if path in s.conditions}
        rounds = max(
            plan.repeat_of(setting.entry).min + _warm_up(plan, setting) for setting in settings
        )
        if nest is not None and nest.boots > 1:
            rounds = nest.boots
        if len(levels) > 1:
            total += rounds * sum(map(_boot_s, levels))
    return total
