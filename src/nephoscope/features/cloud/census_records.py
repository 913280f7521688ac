"""The document of `nephoscope cloud census`."""

from __future__ import annotations

from nephoscope.core.records import dataclass
from nephoscope.features.census.hosts import HostHints
from nephoscope.features.census.records import Census
from nephoscope.features.platforms.records import BootFigures


@dataclass(frozen=True, slots=True)
class CloudCensus:
    """A census of machines that were rented for it.

    name: label `census` of its runs. planned, measured: machines. waves: how often all of them are
    rented; waves_begun: so far. runs: stored, one for each batch. cost: at the quoted prices, of
    the runs of this call; null where nothing has a price. launches: by type and zone, each machine
    one repetition. problems: of machines that failed, never answered or were not granted, a
    sentence each. stopped: why machines that are planned were not rented; '' when all were.
    """

    name: str
    planned: int
    measured: int
    waves: int
    waves_begun: int
    runs: tuple[str, ...]
    cost: float | None
    currency: str
    launches: tuple[BootFigures, ...]
    hosts: tuple[HostHints, ...]
    problems: tuple[str, ...]
    stopped: str
    census: Census
