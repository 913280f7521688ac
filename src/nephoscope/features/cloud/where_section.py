"""Where a job runs best, as a page."""

from __future__ import annotations

from nephoscope.core import units
from nephoscope.features.cloud.where import WhereRow, WhereToRun, as_money, as_time
from nephoscope.report import wording
from nephoscope.report.blocks import Section, Sentence, items
from nephoscope.report.columns import table, text

_NONE = "–"


def section(result: WhereToRun) -> Section:
    """Returns the whole page: the verdicts first."""

    def cost(row: WhereRow) -> str:
        return _NONE if row.cost is None else as_money(row.cost, result.currency)

    listing = table(
        result.rows,
        text("data at", lambda row: wording.clean(row.data_at)),
        text("run at", lambda row: wording.clean(row.run_at)),
        text("transfer", lambda row: _NONE if row.transfer_s is None else as_time(row.transfer_s)),
        text("computing", lambda row: as_time(row.compute_s)),
        text("together", lambda row: _NONE if row.time_s is None else as_time(row.time_s)),
        text("n", lambda row: str(row.time_s.n) if row.time_s is not None else "0"),
        text("cost", cost),
        caption=f"A job that reads {units.format_value(result.data_bytes, 'bytes')}.",
    )
    lead = [Sentence(sentence, lead=True) for sentence in result.verdicts]
    return Section("where", "Where to run", (*lead, listing, *items(result.notes)))
