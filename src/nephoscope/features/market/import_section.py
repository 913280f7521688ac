"""What an import of server types did, as a section."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.core import units
from nephoscope.features.market.import_records import MarketImport
from nephoscope.report import wording
from nephoscope.report.blocks import Section, Sentence, items

_NAMED = 3


def import_section(record: MarketImport) -> Section:
    """Returns the section."""
    lead = (
        f"{record.stored_types:,} server types with {record.stored_figures:,} figures and "
        f"{record.stored_launches:,} launches are stored."
    )
    blocks = (Sentence(lead, lead=True), Sentence(record.lacks), *items(_notes(record)))
    return Section("import", "Imported server types", blocks)


def _notes(record: MarketImport) -> Iterator[str]:
    took = units.format_value(1e9 * record.elapsed_s, "ns")
    if record.read:
        yield (
            f"{wording.plural(record.read, 'type')} read in {took}: {record.files_read:,} of "
            f"{record.files:,} files state facts or figures."
        )
    if record.unchanged:
        yield f"{wording.plural(record.unchanged, 'type')} stored already, and unchanged since."
    if record.resumed:
        yield f"{record.resumed:,} of them by an import that was interrupted: this one resumed it."
    if record.left_out_count:
        named = "; ".join(record.left_out[:_NAMED])
        more = record.left_out_count - min(_NAMED, len(record.left_out))
        rest = f"; and {more:,} more" if more else ""
        count = wording.plural(record.left_out_count, "entry")
        yield f"{count} of files cannot be used and are left out: {named}{rest}."
    if record.without_value:
        yield f"{record.without_value:,} figures are null or 0, and count as not measured."
    if record.failed_tasks:
        yield (
            f"{wording.plural(record.failed_tasks, 'task')} ended with an error: the figures that "
            "they had written until then are used."
        )
    if record.not_read:
        tasks = ", ".join(f"{task} ({count:,})" for task, count in record.not_read.items())
        yield f"Files of tasks that are not known: {tasks}."
    yield from _prices(record)


def _prices(record: MarketImport) -> Iterator[str]:
    if record.prices is not None:
        yield (
            f"{record.prices:,} prices are stored; {record.prices_matched:,} server types have one."
        )
        for reason, rows in (record.prices_left_out or {}).items():
            yield f"Prices not used: {wording.plural(rows, 'row')} {reason}."
    elif record.stored_types:
        yield "`nephoscope market --work redis` shows them by price; --prices FILE adds prices."
