"""Records of platforms: boots, memory per guest, density, and the overhead of system calls."""

from __future__ import annotations

from collections.abc import Mapping

from nephoscope.core.model import Estimate, Factors
from nephoscope.core.records import dataclass

MARKS = ("output", "kernel", "userland", "reachable")
"""Marks of a boot in order, as `nephoscope.measure.lab.boot.BootTimes.marks` names them."""

LAUNCH_MARKS = ("answer", "running", "reachable")
"""Marks of the launch of a rented machine in order; `reachable` is the first login.

The start of the kernel has no place among them: it may come before or after `running`."""


@dataclass(frozen=True, slots=True)
class Boot:
    """One boot. marks_ns: mark to ns since the request; a mark that was not seen is missing.

    memory_bytes: proportional set size (PSS) of all its processes when it was reachable; None
    where it has no process. resolution_ns: maximum delay with which a mark was seen.
    """

    platform: str
    round: int
    marks_ns: Mapping[str, int]
    memory_bytes: int | None
    resolution_ns: int


@dataclass(frozen=True, slots=True)
class BootFigures:
    """Mean times of the boots of a platform, and the memory of a guest that has just booted.

    marks: mark to the mean time since the request. segments: mark to the mean time since the mark
    before it; they add up to `reachable`. reasons: mark, or `memory`, to why it is missing.
    failures: sentences on the boots that failed. resolution_ns: maximum over the boots.
    """

    name: str
    marks: Mapping[str, Estimate]
    segments: Mapping[str, Estimate]
    memory: Estimate | None
    reasons: Mapping[str, str]
    resolution_ns: int | None
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DensityStep:
    """Guests that are loaded at once. live: those that answered every request that they received.

    p99_ratio: p99 of the first guest's requests while all guests are loaded over the p99 while the
    other guests are idle; None where it was refused. completed_per_s: valid responses of all guests
    together. reason: failures of guests, and why there is no ratio.
    """

    guests: int
    live: int
    p99_ratio: Estimate | None
    completed_per_s: Estimate
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Density:
    """Guests of a platform until the p99 doubles.

    guests: largest number whose p99 is below twice that of one; low: largest number up to which
    every step's interval lies below 2; high: one guest less than the first step whose interval lies
    above 2, None without such a step. guests is None where nothing could be measured. stopped: why
    the search ended. memory: of a guest after the last step, over the guests.
    """

    platform: str
    guests: Estimate | None
    stopped: str
    steps: tuple[DensityStep, ...]
    memory: Estimate | None


@dataclass(frozen=True, slots=True)
class UnavailablePlatform:
    """A platform that this machine cannot run, and what to do about it."""

    platform: str
    reason: str
    next_step: str


@dataclass(frozen=True, slots=True)
class PlatformReport:
    """Results of `nephoscope platforms`.

    guest_memory_bytes: memory of each guest with a kernel of its own. rate_per_s: requests per
    second and guest. same_page_merging: whether the kernel merges equal pages (KSM), which lowers
    PSS; None where it does not say. accelerators: platform to the accelerator of its guests. boots:
    every single boot. order: of the platforms whose density was measured.
    """

    seed: int
    guest_memory_bytes: int
    rate_per_s: float
    max_guests: int
    same_page_merging: bool | None
    accelerators: Mapping[str, str]
    platforms: tuple[BootFigures, ...]
    densities: tuple[Density, ...]
    unavailable: tuple[UnavailablePlatform, ...]
    boots: tuple[Boot, ...]


@dataclass(frozen=True, slots=True)
class CallOverhead:
    """A system-call class on a platform against the reference platform, paired by round.

    overhead: difference of the times; ratio: their ratio. share: of the sum of all differences;
    None where that sum is not above zero.
    """

    call: str
    reference: Estimate
    measured: Estimate
    overhead: Estimate | None
    ratio: Estimate | None
    share: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PlatformOverhead:
    """The overhead of a platform by class of system call, largest first.

    total: of one operation of each class. factors: other factors of the setting.
    """

    platform: str
    target: str
    factors: Factors
    calls: tuple[CallOverhead, ...]
    total: Estimate | None


@dataclass(frozen=True, slots=True)
class SystemCallOverhead:
    """Overheads of the platforms of a run against `reference`. notes: what has no overhead."""

    reference: str
    platforms: tuple[PlatformOverhead, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredBoots:
    """Boots that a run recorded, one entry for each target and level."""

    boots: tuple[BootFigures, ...]
