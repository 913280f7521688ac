"""Quiet, noisy, quiet: the order of a round in which every noisy trial has a quiet one before and
after it.

What drifts while a round is measured moves both neighbours of a noisy trial, and a machine that
does not return to what it was shows that in the second. One quiet trial serves as the one after a
noisy trial and as the one before the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nephoscope.errors import PlanError
from nephoscope.model import Setting
from nephoscope.plans.design.baselines import Pair
from nephoscope.plans.design.order import order_round
from nephoscope.plans.model import Plan
from nephoscope.reading.sentences import Place


@dataclass(frozen=True, slots=True)
class Step:
    """One trial of a round.

    turn: 0 for the first trial of this alternative in the round, 1 for the second, … quiet: of a
    noisy trial the quiet alternative, whose turns `before` and `after` enclose it; else None.
    """

    pair: Pair
    turn: int = 0
    quiet: Pair | None = None
    before: int = 0
    after: int = 0


def check(plan: Plan, place: Place) -> None:
    """PlanError for a design that is to go around a baseline which cannot be gone around."""
    if not plan.design.around:
        return
    at = place(("design", "around"))
    if not plan.design.baseline:
        raise PlanError(
            f"{at}there is no baseline to return to between the trials.",
            "Name it: `baseline: {FACTOR: LEVEL}`.",
        )
    if "target" in plan.design.baseline:
        raise PlanError(
            f"{at}a baseline on another target is no quiet trial of the same one.",
            "Drop `target` from the baseline, or drop `around`.",
        )
    if plan.concurrent:
        raise PlanError(
            f"{at}a trial is not quiet while another one runs beside it.",
            "Drop `concurrent`, or drop `around`.",
        )


def baseline_of(plan: Plan, settings: Sequence[Setting]) -> dict[Pair, Pair]:
    """Of each noisy alternative the quiet one around it; empty unless the design goes around."""
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
    quiet: Mapping[Pair, Pair],
    blocks: Mapping[Pair, str],
) -> list[Step]:
    """The trials of a round in order. Pure, as `order_round` is.

    active: the alternatives of the round; a noisy one whose quiet one is not among them goes
    without. quiet: noisy alternative -> quiet one. blocks: what is dear to change, as
    Setting.block; trials of one block follow one another. Blocks, the quiet alternatives within a
    block, and the noisy ones around which each of them goes stand in fresh random order.
    """
    there = set(active)
    runs: dict[tuple[str, Pair], list[Pair]] = {}
    used = {quiet[pair] for pair in active if quiet.get(pair) in there}
    for pair in order_round(seed, round, active):
        calm = quiet.get(pair)
        if calm in there:
            assert calm is not None
            runs.setdefault((blocks.get(pair, ""), calm), []).append(pair)
        elif pair not in used:
            runs.setdefault((blocks.get(pair, ""), pair), [])
    places = _places(seed, round, [block for block, _ in runs])
    drawn = {key: at for at, key in enumerate(order_round(seed, round, list(runs)))}
    steps: list[Step] = []
    turns: dict[Pair, int] = {}
    for key in sorted(runs, key=lambda key: (places[key[0]], drawn[key])):
        steps += _run(key[1], runs[key], turns)
    return steps


def _run(calm: Pair, noisy: Sequence[Pair], turns: dict[Pair, int]) -> list[Step]:
    """Quiet, noisy, quiet, …, quiet; `turns` counts the quiet ones of the whole round."""
    turn = turns.get(calm, 0)
    steps = [Step(calm, turn)]
    for pair in noisy:
        steps += [Step(pair, 0, calm, turn, turn + 1), Step(calm, turn + 1)]
        turn += 1
    turns[calm] = turn + 1
    return steps


def _places(seed: int, round: int, blocks: Sequence[str]) -> dict[str, int]:
    drawn = order_round(seed, round, [(block,) for block in dict.fromkeys(blocks)])
    return {block: at for at, (block,) in enumerate(drawn)}
