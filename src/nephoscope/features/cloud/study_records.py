"""The document of a study's census that was repeated on rented machines."""

from __future__ import annotations

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.features.census.records import Census


@dataclass(frozen=True, slots=True)
class StatementOutcome:
    """A statement of the study beside what was measured. published, measured: in words; mark,
    reason: as of every comparison of a study."""

    instance_type: str
    claim: str
    published: str
    measured: str
    mark: str
    reason: str


@dataclass(frozen=True, slots=True)
class ShareComparison:
    """A share of a CPU model. source: `published` or `measured`; n: machines."""

    source: str
    instance_type: str
    model: str
    count: int
    share: Estimate


@dataclass(frozen=True, slots=True)
class StudyCensusResult:
    """The CPU models of rented machines beside those of a study. ground: on which both can be
    compared. clouds: providers and regions that were measured. runs: that hold the machines.
    planned, measured: machines; planned is null for stored runs.
    """

    name: str
    ground: str
    clouds: tuple[str, ...]
    runs: tuple[str, ...]
    planned: int | None
    measured: int
    shares: tuple[ShareComparison, ...]
    statements: tuple[StatementOutcome, ...]
    census: Census
