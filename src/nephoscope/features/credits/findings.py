"""Finding that a machine is on credit: fast for a while, then at its baseline."""

from __future__ import annotations

from nephoscope.core import units
from nephoscope.core.estimate_text import estimate_text
from nephoscope.core.model import Finding, Severity
from nephoscope.features.credits.records import BurstCredits, CreditSeries
from nephoscope.stats.target_evidence import Answers, TargetEvidence


def on_credit(case: TargetEvidence) -> Answers:
    """Machines whose rate fell from a burst to a baseline during the run."""
    record = case.part(BurstCredits)
    for series in record.series if record is not None else ():
        if series.source == case.target and series.analysis.is_on_credit:
            yield Finding(
                "on_credit",
                Severity.WARNING,
                sentence(series),
                evidence(series),
                "Plan with the baseline, or choose a type without credits; a pause shows whether "
                "the rate comes back.",
            )


def sentence(series: CreditSeries) -> str:
    """Returns what is said of a machine on credit."""
    recognised = series.analysis
    assert recognised.burst is not None
    assert recognised.baseline is not None
    assert recognised.knee is not None
    share = recognised.baseline.value / recognised.burst.value
    knee = units.format_duration(recognised.knee.value)
    rates = (
        f"{units.format_value(recognised.burst.value, series.unit)} until {knee}, then "
        f"{units.format_value(recognised.baseline.value, series.unit)} ({100 * share:.0f} %)"
        if series.unit != "ratio"
        else f"after {knee} its rates are {100 * share:.0f} % of those before"
    )
    what = f" ({series.metric})" if series.metric else ""
    return f"{series.source or 'This machine'} is on credit{what}: {rates}."


def evidence(series: CreditSeries) -> tuple[str, ...]:
    """Returns the values behind the sentence, with their intervals."""
    recognised = series.analysis
    rows = (
        ("burst", recognised.burst),
        ("baseline", recognised.baseline),
        ("credit", recognised.credit),
        ("refill while idle", recognised.refill),
    )
    return tuple(f"{name}: {estimate_text(value)}" for name, value in rows if value is not None)


RULES = (on_credit,)
