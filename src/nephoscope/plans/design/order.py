"""The order of trials: every alternative once a round, in fresh random order, from a seed.

Randomised multiple interleaved trials (Abedi & Brecht, ICPE 2017): what drifts over time then hits
all alternatives alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

from nephoscope.plans.model import Nest

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


def simulation_seed(seed: int, round: int) -> int:
    """The seed of what is simulated in a round, above zero and below 2^63.

    All alternatives of a round have the same one, so that they differ in what was varied and not in
    their luck; no two rounds, and no two seeds of a plan, share one but by accident of the hash.
    """
    drawn = hashlib.blake2b(f"chance/{seed}/{round}".encode(), digest_size=8).digest()
    return int.from_bytes(drawn, "big") >> 1 or 1


def warmup_rounds(warmup: int) -> range:
    """The warm-up rounds in order: -(warmup - 1), …, -1, 0."""
    return range(1 - warmup, 1)


def nest_of(nest: Nest, round: int) -> dict[str, int]:
    """The instance and the boot (of that instance) to which a round belongs, from 0.

    Warm-up rounds belong to the first.
    """
    return nest.place_of((max(round, 1) - 1) // nest.rounds)
