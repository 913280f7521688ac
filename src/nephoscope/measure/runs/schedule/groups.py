"""What is measured at one moment: one target alone, or all targets of a setting together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from nephoscope.core.model import Setting, TrialKey
from nephoscope.core.records import dataclass
from nephoscope.core.shared_load import sharing_targets
from nephoscope.measure import plans
from nephoscope.measure.plans import Plan
from nephoscope.measure.runs.schedule.alternatives import Pair


@dataclass(frozen=True, slots=True)
class Group:
    """The trials of one setting that are executed as one.

    targets: those that the trials are of, one each. Loads, hooks, a serving peer and a client may
    need others.
    repeat_index: how often the setting was measured before in the same round. baseline: index of
    the setting that stands before and after it, as repeats `before` and `after`; None where
    none does.
    """

    setting: Setting
    targets: tuple[str, ...]
    repeat_index: int = 0
    baseline: int | None = None
    before: int = 0
    after: int = 0

    @property
    def members(self) -> tuple[Pair, ...]:
        """The alternatives that get a trial."""
        return tuple((self.setting.index, target) for target in self.targets)

    @property
    def sharing(self) -> tuple[str, ...]:
        """The targets that share one load; () where each trial is a whole load."""
        setting = self.setting
        return sharing_targets(
            {
                "targets": setting.targets,
                "together": setting.together,
                "params": setting.params,
            }
        )

    @property
    def participants(self) -> tuple[str, ...]:
        """The targets of the trials, and their clients, each once."""
        names = [*self.targets, *map(self.setting.client_of, self.targets)]
        return tuple(dict.fromkeys(names))

    @property
    def needs(self) -> tuple[str, ...]:
        """Every target that takes part in the trial, each once."""
        setting = self.setting
        names = [*self.participants, *map(setting.server_of, self.targets)]
        for load in setting.backgrounds:
            names += [*load.targets, *map(load.server_of, load.targets)]
        names += [hook.target for hook in (*setting.before, *setting.after)]
        return tuple(dict.fromkeys(name for name in names if name))

    def keys(self, round: int) -> tuple[TrialKey, ...]:
        """The keys of its trials in a round."""
        return tuple(
            TrialKey(round, self.setting.index, target, self.repeat_index)
            for target in self.targets
        )

    def around(self, round: int, target: str) -> dict[str, TrialKey]:
        """The baseline trials `before` and `after` that of a target; empty where there are none."""
        if self.baseline is None:
            return {}
        indices = {"before": self.before, "after": self.after}
        return {when: TrialKey(round, self.baseline, target, at) for when, at in indices.items()}


@dataclass(frozen=True, slots=True)
class Work:
    """A group that is to be measured in a round.

    nest: instance and boot of its cell, as a record keeps them. notes: for its records.
    """

    round: int
    group: Group
    nest: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def keys(self) -> tuple[TrialKey, ...]:
        """The keys of its trials."""
        return self.group.keys(self.round)


def scheduled(
    plan: Plan, seed: int, round: int, active: Sequence[Pair], settings: Sequence[Setting]
) -> list[Group]:
    """The groups of a round in the order of their execution, as the plan's design wants it.

    Rounds of warm-up ready each setting once; nothing in them is held against anything.
    """
    groups = groups_of(active, settings)
    baselines = plans.baseline_of(plan, settings)
    if not baselines or round < 1:
        return in_order(seed, round, groups)
    by_first = {group.members[0]: group for group in groups}
    blocks = {pair: group.setting.block for pair, group in by_first.items()}
    return [
        replace(
            by_first[step.pair],
            repeat_index=step.repeat_index,
            baseline=step.baseline[0] if step.baseline else None,
            before=step.before,
            after=step.after,
        )
        for step in plans.order_aba_round(seed, round, list(by_first), baselines, blocks)
    ]


def groups_of(active: Iterable[Pair], settings: Sequence[Setting]) -> list[Group]:
    """The groups of a round; active: alternatives that go on. A setting whose targets start
    together goes on with all of them as long as one of them does."""
    groups: dict[Pair, Group] = {}
    for index, target in active:
        setting = settings[index]
        targets = setting.targets if setting.together else (target,)
        groups.setdefault((index, targets[0]), Group(setting, targets))
    return list(groups.values())


def in_order(seed: int, round: int, groups: Sequence[Group]) -> list[Group]:
    """The groups in the order of this round: that of the seed; see plans.order_round.

    Settings of one `block` follow one another, because what they share is dear to change; the
    order of the blocks is the seed's as well.
    """
    by_first: Mapping[Pair, Group] = {group.members[0]: group for group in groups}
    drawn = [by_first[pair] for pair in plans.order_round(seed, round, list(by_first))]
    blocks = plans.order_round(seed, round, list(dict.fromkeys((g.setting.block,) for g in drawn)))
    place = {block: number for number, (block,) in enumerate(blocks)}
    return sorted(drawn, key=lambda group: place[group.setting.block])
