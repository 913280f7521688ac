"""Time zones by name, as hours ahead of UTC: the simulator knows hours only."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Callable, MutableMapping
from typing import Any

from nephoscope.core.errors import Lacking, PlanError
from nephoscope.core.reading.sentences import did_you_mean
from nephoscope.core.reading.yamltext import Loc

DATE = "date"
"""Key of the day for which zones are resolved; taken out of the scenario."""

DEFAULT_DATE = "2026-01-15"
"""Winter in the north: a fixed day, so that a scenario means the same whenever it is run."""

_HOURS = re.compile(r"UTC([+-]\d{1,2}(:\d{2})?)?")


def resolve(values: MutableMapping[str, Any], place: Callable[[Loc], str]) -> None:
    """Puts hours in place of the names of zones of `user_bases`. PlanError for an unknown one."""
    day = _day(values, place)
    bases = values.get("user_bases")
    for name, base in bases.items() if isinstance(bases, dict) else ():
        zone = base.get("zone") if isinstance(base, dict) else None
        if isinstance(zone, str) and not _HOURS.fullmatch(zone):
            base["zone"] = _hours(zone, day, place(("user_bases", name, "zone")))


def _day(values: MutableMapping[str, Any], place: Callable[[Loc], str]) -> datetime.datetime:
    text = str(values.get(DATE, DEFAULT_DATE))
    try:
        day = datetime.date.fromisoformat(text)
    except ValueError as error:
        raise PlanError(
            f"{place((DATE,))}'{text}' is no date.", "Write it as 2026-07-01."
        ) from error
    values.pop(DATE, None)
    # Noon: no zone changes its clock then.
    return datetime.datetime.combine(day, datetime.time(12), datetime.UTC)


def _hours(zone: str, day: datetime.datetime, where: str) -> float:
    try:
        offset = day.astimezone(zoneinfo.ZoneInfo(zone)).utcoffset()
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        known = zoneinfo.available_timezones()
        if not known:
            raise Lacking(
                f"{where}the zone '{zone}' cannot be looked up: this machine has no time zones.",
                "Install them: `apt-get install tzdata`; or write hours: zone: UTC-6.",
            ) from error
        raise PlanError(
            f"{where}there is no time zone '{zone}'{did_you_mean(zone, known)}.",
            "Write a name as in Europe/Berlin, or hours: UTC-6.",
        ) from error
    assert offset is not None
    return offset.total_seconds() / 3600
