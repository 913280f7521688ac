"""Searches in this process: machines of planted speeds, without any cloud or clock."""

from __future__ import annotations

import random
from collections.abc import Sequence

from nephoscope.core.errors import RunFailed
from nephoscope.features.cloud.picking import MachineSearch
from nephoscope.features.cloud.search import CandidateMachine

MODELS = ((0.17, 1.1), (0.4, 1.0), (0.42, 1.4), (0.01, 0.9))
"""Share and speed of the CPU models behind one type: Zhuang 2012, Tables 4.1 and 5.1 and the
example of section 5.2, which have no speed of the rarest one."""
WITHIN = 0.03
"""Coefficient of variation of the machines of one model."""


def drawn_seconds(rng: random.Random) -> float:
    """Seconds of a unit of work of a new machine."""
    (speed,) = rng.choices([s for _, s in MODELS], [share for share, _ in MODELS])
    return 1 / (speed * rng.lognormvariate(0.0, WITHIN))


class PlantedSource:
    """See `CandidateSource`. fails_at: number of the launch that the cloud refuses."""

    def __init__(self, rng: random.Random, search: MachineSearch, fails_at: int = 0) -> None:
        self._rng, self._search, self._fails_at = rng, search, fails_at
        self.problems: list[str] = []
        self.launched = 0
        self.billed_h = 0.0
        self.up: dict[str, CandidateMachine] = {}
        self.kept: list[str] = []
        self.limit = ""

    async def launch(self, count: int) -> Sequence[CandidateMachine]:
        made = []
        trial_h = self._search.trial_h * self._rng.uniform(0.8, 1.2)
        self.billed_h += trial_h * (count + len(self.up))
        for _ in range(count):
            self.launched += 1
            if self.launched == self._fails_at:
                raise RunFailed("the quota is reached.")
            name = f"m{self.launched}"
            seconds = drawn_seconds(self._rng)
            made.append(CandidateMachine(name, name, name, "z", "", seconds, (seconds,)))
            self.up[name] = made[-1]
        return made

    def refuses(self, count: int) -> str:
        return self.limit

    async def give_up(self, candidate: CandidateMachine) -> None:
        del self.up[candidate.rental]

    async def remove(self, candidate: CandidateMachine) -> None:
        del self.up[candidate.rental]

    async def keep(self, candidate: CandidateMachine) -> None:
        self.kept.append(candidate.rental)
        del self.up[candidate.rental]

    async def close(self) -> None:
        self.up.clear()
