"""Recording and alerting rules for Prometheus: error ratios and burn rates over several windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.features.sla.objectives import sentence
from nephoscope.features.sla.terms import Agreement, Objective, calendar_unit

ERRORS = "sum by (service) (rate(nephoscope_sla_failed_total[$window]))"
TOTAL = "sum by (service) (rate(nephoscope_sla_events_total[$window]))"
"""Queries over the counters that `nephoscope sla watch --metrics` writes."""

_DAYS: Mapping[str, int] = {"day": 1, "week": 7, "month": 30, "quarter": 90, "year": 365}
ALERTS = (
    ("page", 0.02, ("1h", 1), "5m"),
    ("page", 0.05, ("6h", 6), "30m"),
    ("ticket", 0.10, ("3d", 72), "6h"),
)
"""Severity, share of the budget, long window with its hours, short window."""
_WINDOWS = ("5m", "30m", "1h", "6h", "3d")


def factor(share: float, period: float, window: float) -> float:
    """Returns the burn rate that uses this share of the budget of a period within a window.

    period, window: in one unit of time.
    """
    return share * period / window


def period_hours(agreement: Agreement) -> float:
    """Returns the length of the agreement's period; a month counts 30 days."""
    if unit := calendar_unit(agreement.period):
        return 24 * unit[0] * _DAYS[unit[1]]
    return units.parse_duration_ns(agreement.period) / 3.6e12


def rules(agreement: Agreement, errors: str = ERRORS, total: str = TOTAL) -> dict[str, Any]:
    """Returns the rule groups of all objectives that are shares of good events.

    errors, total: queries with `$window`. Raises UsageError where there is no such objective.
    """
    for query in (errors, total):
        if "$window" not in query:
            raise UsageError(
                f"The query '{query[:80]}' has no $window.",
                "Write the range as [$window], for example rate(x_total[$window]).",
            )
    groups = []
    for number, objective in enumerate(agreement.objectives, start=1):
        share = _target(objective)
        if share is None or share >= 1:
            continue
        labels = {"sla": agreement.name, "objective": str(number)}
        groups.append(_recordings(agreement, labels, share, errors, total))
        groups.append(_alerts(agreement, objective, labels))
    if not groups:
        raise UsageError(
            f"No objective of {agreement.name} has an error budget.",
            "Rules need an objective below 100 % that is a share of good events.",
        )
    return {"groups": groups}


def _target(objective: Objective) -> float | None:
    if objective.at_most is not None:
        return float(1 - objective.at_most)
    return None if objective.target is None else float(objective.target)


def _name(agreement: Agreement, labels: Mapping[str, str]) -> str:
    return f"sla-{agreement.name}-{labels['objective']}"


def _recordings(
    agreement: Agreement, labels: dict[str, str], share: float, errors: str, total: str
) -> dict[str, Any]:
    entries: list[dict[str, Any]] = [
        {"record": "sla:objective:ratio", "expr": f"vector({share!r})", "labels": labels}
    ]
    for window in _WINDOWS:
        ratio = "({}) / ({})".format(
            *(query.replace("$window", window) for query in (errors, total))
        )
        entries.append({"record": f"sla:error:ratio_rate{window}", "expr": ratio, "labels": labels})
        burn = f"sla:error:ratio_rate{window}{_selector(labels)} / {1 - share:.12g}"
        entries.append({"record": f"sla:burn_rate:{window}", "expr": burn, "labels": labels})
    return {"name": f"{_name(agreement, labels)}-recordings", "rules": entries}


def _selector(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def _alerts(agreement: Agreement, objective: Objective, labels: dict[str, str]) -> dict[str, Any]:
    entries = []
    for severity, share, (window, hours), short in ALERTS:
        limit = factor(share, period_hours(agreement), hours)
        selector = _selector(labels)
        entries.append(
            {
                "alert": "ErrorBudgetBurn",
                "expr": f"sla:burn_rate:{window}{selector} > {limit:.6g} "
                f"and sla:burn_rate:{short}{selector} > {limit:.6g}",
                "labels": {**labels, "severity": severity, "window": window},
                "annotations": {
                    "summary": f"{agreement.title}: {100 * share:g} % of the error budget of "
                    f"'{sentence(objective)}' is used within {window}."
                },
            }
        )
    return {"name": f"{_name(agreement, labels)}-alerts", "rules": entries}
