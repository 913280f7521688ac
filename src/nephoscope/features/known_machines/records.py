"""Records of a machine among the published ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nephoscope.core.model import Estimate

MIN_MACHINES = 5
"""With fewer machines a percentile within the class would say more about the data set."""


@dataclass(frozen=True, slots=True)
class MachineClass:
    """Published machines to compare with. title: what they have in common. machines: how many."""

    title: str
    machines: int


@dataclass(frozen=True, slots=True)
class MachineRank:
    """A rate among those of a class.

    measured: what was measured, in words. metric: of the published figures. value: of this machine;
    of its type the published figure, without an interval. percentile: share of the machines of the
    class that it is better than; None where fewer than five have such a figure. median: of the
    class. of_type: published figure of the machine's own type.
    """

    measured: str
    metric: str
    relation: str
    value: Estimate
    machines: MachineClass
    percentile: Estimate | None
    median: float | None
    of_type: float | None


@dataclass(frozen=True, slots=True)
class MachineStanding:
    """A machine of a run. type: PROVIDER/TYPE, empty where it is not known; identified_by: what
    states it. price_per_h: of the type. ranks: of what was measured on it. type_ranks: of further
    published figures of its type. left_out: benchmark -> why it compares with nothing.
    """

    target: str
    type: str
    identified_by: str
    price_per_h: float | None
    currency: str
    ranks: tuple[MachineRank, ...]
    type_ranks: tuple[MachineRank, ...]
    left_out: Mapping[str, str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownMachines:
    """The machines of a run among published ones. types: that were imported; 0 without any.

    problem: why the imported types cannot be read.
    """

    types: int
    machines: tuple[MachineStanding, ...] = ()
    lacks: str = ""
    problem: str = ""
