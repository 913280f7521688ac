"""Times that tools state as text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def moment_s(text: Any) -> float | None:
    """Returns seconds since 1970 of an ISO 8601 time; without a zone it is UTC. None for others."""
    try:
        moment = datetime.fromisoformat(str(text))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
