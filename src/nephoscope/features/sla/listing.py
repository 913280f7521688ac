"""The built-in contracts as a list."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.core.records import dataclass
from nephoscope.features.sla import files
from nephoscope.features.sla.objectives import sentence


@dataclass(frozen=True, slots=True)
class ContractRow:
    """A contract: its objectives as sentences and where its terms were read."""

    name: str
    title: str
    provider: str
    period: str
    objectives: tuple[str, ...]
    source: str
    effective: str | None
    checked: str | None


@dataclass(frozen=True, slots=True)
class ContractList:
    """Contracts by name."""

    contracts: tuple[ContractRow, ...]


def contract_list(names: Sequence[str]) -> ContractList:
    """Returns the contracts of these names or files."""
    return ContractList(
        tuple(
            ContractRow(
                terms.name,
                terms.title,
                terms.provider,
                terms.period,
                tuple(map(sentence, terms.objectives)),
                terms.source,
                None if terms.effective is None else terms.effective.isoformat(),
                None if terms.checked is None else terms.checked.isoformat(),
            )
            for terms in map(files.load, names)
        )
    )
