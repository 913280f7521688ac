"""Samples of several trials that are read or written at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from nephoscope.core.model import TrialRecord

if TYPE_CHECKING:
    import pyarrow as pa


class Batch(NamedTuple):
    """Samples of several trials. trials: each with its number of rows, in their order."""

    trials: list[tuple[TrialRecord, int]]
    table: pa.Table

    def split(self) -> Iterator[tuple[TrialRecord, pa.Table]]:
        """Yields each trial with its samples."""
        row = 0
        for record, rows in self.trials:
            yield record, self.table.slice(row, rows)
            row += rows
