"""The order of trials: every alternative once a round, in fresh random order, from a seed.

Randomised multiple interleaved trials (Abedi & Brecht, ICPE 2017): what drifts over time then hits
all alternatives alike.

In an ABA design every loaded trial has a baseline trial right before and after it: what drifts
during a round moves both, and a machine that does not recover shows that in the second. One
baseline trial serves as the one after a loaded trial and as the one before the next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TypeVar

from nephoscope.core.model import Setting
from nephoscope.core.records import dataclass
from nephoscope.measure.plans.context import PlanContext
from nephoscope.measure.plans.design.baselines import Pair
from nephoscope.measure.plans.model import Nest, Plan

Alternative = TypeVar("Alternative", bound=tuple[object, ...])


def order_round(seed: int, round: int, active: Sequence[Alternative]) -> list[Alternative]:
    """The alternatives, each as often as in `active`, in the order of this round.

    active: tuples of plain values such as (setting index, target name). Pure: the same arguments
    give the same order on every machine and Python version. The order is that of a keyed hash of
    each alternative, so that an alternative that drops out leaves the order of the others as it
    was, and a resumed run goes on where it was.
    """

    def draw(alternative: Alternative) -> bytes:
        text = f"{seed}/{round}/{'/'.join(map(str, alternative))}"
        return hashlib.blake2b(text.encode(), digest_size=16).digest()

    return sorted(active, key=draw)


def trial_seed(seed: int, round: int, *alternative: str) -> int:
    """The seed of the random numbers of a trial, above zero and below 2^63.

    Without `alternative`, all alternatives of a round share one. No two rounds, and no two seeds of
    a plan, share one but by accident of the hash.
    """
    text = "/".join(("chance", str(seed), str(round), *alternative))
    drawn = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(drawn, "big") >> 1 or 1


def warmup_rounds(warmup: int) -> range:
    """The warm-up rounds in order: -(warmup - 1), …, -1, 0."""
    return range(1 - warmup, 1)


def nest_of(nest: Nest, round: int) -> dict[str, int]:
    """The instance and the boot (of that instance) to which a round belongs, from 0.

    Warm-up rounds belong to the first.
    """
    return nest.place_of((max(round, 1) - 1) // nest.rounds)


@dataclass(frozen=True, slots=True)
class Step:
    """One trial of a round.

    repeat_index: 0 for the first trial of this alternative in the round, 1 for the second, …
    baseline: the one of a loaded trial, whose trials `before` and `after` enclose it; else None.
    """

    pair: Pair
    repeat_index: int = 0
    baseline: Pair | None = None
    before: int = 0
    after: int = 0


def check(context: PlanContext) -> None:
    """Raises PlanError for an ABA design without a baseline that it can return to."""
    design = context.plan.design
    for is_wrong, message, hint in (
        (
            not design.baseline,
            "there is no baseline to return to between the trials.",
            "Name it: `baseline: {FACTOR: LEVEL}`.",
        ),
        (
            "target" in design.baseline,
            "a baseline on another target is no baseline trial of the same one.",
            "Drop `target` from the baseline, or drop `around`.",
        ),
        (
            context.plan.concurrent,
            "a trial is no baseline while another one runs at the same time.",
            "Drop `concurrent`, or drop `around`.",
        ),
    ):
        if design.around and is_wrong:
            raise context.error(("design", "around"), message, hint)


def baseline_of(plan: Plan, settings: Sequence[Setting]) -> dict[Pair, Pair]:
    """Returns the baseline of each loaded alternative; empty without an ABA design."""
    if not plan.design.around:
        return {}
    return {
        (setting.index, name): (int(pair[0]), str(pair[1]))
        for setting in settings
        for name, pair in setting.baseline.items()
    }


def order_aba_round(
    seed: int,
    round: int,
    active: Sequence[Pair],
    baselines: Mapping[Pair, Pair],
    blocks: Mapping[Pair, str],
) -> list[Step]:
    """Returns the trials of a round in order. Pure, as `order_round` is.

    active: the alternatives of the round; a loaded one whose baseline is not among them goes
    without. baselines: loaded alternative -> its baseline. blocks: levels that are expensive to
    change, as Setting.block; trials of one block follow one another. Blocks, the baselines within a
    block, and the loaded ones around each of them stand in fresh random order.
    """
    in_round = set(active)
    runs: dict[tuple[str, Pair], list[Pair]] = {}
    used = {baselines[pair] for pair in active if baselines.get(pair) in in_round}
    for pair in order_round(seed, round, active):
        baseline = baselines.get(pair)
        if baseline is not None and baseline in in_round:
            runs.setdefault((blocks.get(pair, ""), baseline), []).append(pair)
        elif pair not in used:
            runs.setdefault((blocks.get(pair, ""), pair), [])
    names = dict.fromkeys((block,) for block, _ in runs)
    block_order = {block: at for at, block in enumerate(order_round(seed, round, list(names)))}
    run_order = {key: at for at, key in enumerate(order_round(seed, round, list(runs)))}
    steps: list[Step] = []
    repeats: dict[Pair, int] = {}
    for key in sorted(runs, key=lambda key: (block_order[key[:1]], run_order[key])):
        steps += _alternate(key[1], runs[key], repeats)
    return steps


def _alternate(baseline: Pair, loaded: Sequence[Pair], repeats: dict[Pair, int]) -> list[Step]:
    """Baseline, loaded, baseline, …, baseline; `repeats` counts baselines of the whole round."""
    index = repeats.get(baseline, 0)
    steps = [Step(baseline, index)]
    for pair in loaded:
        steps += [
            Step(pair, 0, baseline, index, index + 1),
            Step(baseline, index + 1),
        ]
        index += 1
    repeats[baseline] = index + 1
    return steps
