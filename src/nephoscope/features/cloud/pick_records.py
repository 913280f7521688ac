"""The document of `nephoscope cloud pick`."""

from __future__ import annotations

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass


@dataclass(frozen=True, slots=True)
class PickedCandidate:
    """A machine that was launched, or started again, and measured. value: median of its trials, in
    `unit`; speed: relative to the mean time over the mix, or to the slowest candidate where there
    is no mix; trials: behind the value. host: physical host, as the provider names it."""

    name: str
    id: str
    zone: str
    host: str
    value: float
    unit: str
    speed: float
    trials: int
    is_kept: bool


@dataclass(frozen=True, slots=True)
class PickedMachine:
    """A search for a fast machine.

    by: launch or stop-start. mix: where the speeds are known from, and mix_machines how many; ''
    and 0 without. launches: that were made; at_most: allowed. keeps_from: slowest relative speed
    that the rule keeps at first; null where it has no mix. predicted: saving against keeping the
    first machine unmeasured, before the search; saving: from the speeds that were measured and the
    time that was billed at the quoted prices. search_cost: of all machines until the decision.
    kept, rental: the machine that stays up, until `expires`; remove: the command that removes it.
    """

    provider: str
    region: str
    type: str
    by: str
    benchmark: str
    metric: str
    hours: float
    mix: str
    mix_machines: int
    launches: int
    at_most: int
    keeps_from: float | None
    candidates: tuple[PickedCandidate, ...]
    predicted: Estimate | None
    saving: Estimate | None
    search_cost: float | None
    currency: str
    selected: str
    address: str
    rental: str
    expires: str
    remove: str
    stopped: str
    problems: tuple[str, ...]
