"""The document of an import of server types."""

from __future__ import annotations

from collections.abc import Mapping

from nephoscope.core.records import dataclass


@dataclass(frozen=True, slots=True)
class MarketImport:
    """What an import of server types did.

    read, unchanged: types that were read, and that were stored already; resumed: of the latter,
    those of an import that had not ended. files: of the types that were read; files_read: those
    that state facts or figures. without_value: figures that are null or 0.
    failed_tasks: tasks that ended with an error. left_out: the first files that cannot be used,
    left_out_count: all. not_read: task -> files that no reader is for. prices: of types, None
    without --prices. stored_*: what the store has now. lacks: what the figures lack.
    """

    root: str
    read: int
    unchanged: int
    resumed: int
    files: int
    files_read: int
    without_value: int
    failed_tasks: int
    left_out: tuple[str, ...]
    left_out_count: int
    not_read: Mapping[str, int]
    stored_types: int
    stored_figures: int
    stored_launches: int
    elapsed_s: float
    lacks: str
    prices: int | None = None
    prices_matched: int | None = None
    prices_left_out: Mapping[str, int] | None = None
