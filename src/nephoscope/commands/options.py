"""Texts of options into values; what is wrong is told with the option's name."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope import units
from nephoscope.errors import UsageError

_MAX_BUDGET_S = 30 * 86_400


def budget_s(text: str | None) -> float | None:
    """Seconds of `--budget`; None where the plan's own budget stands."""
    if text is None:
        return None
    try:
        seconds = units.parse_duration_ns(text) / 1e9
    except UsageError as error:
        raise UsageError(f"--budget: {error.message}", error.hint) from None
    if not 1 <= seconds <= _MAX_BUDGET_S:
        raise UsageError(
            f"--budget: '{text}' is out of range (1 s to 30 d).",
            "Use a duration such as 60s or 10min.",
        )
    return seconds


def sets(texts: Sequence[str]) -> dict[str, str]:
    """Name to value of each `--set NAME=VALUE`; the last one of a name holds."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(
                f"--set takes NAME=VALUE, not '{text}'.", "Use, for example, --set threads=2."
            )
        values[name.strip()] = value.strip()
    return values
