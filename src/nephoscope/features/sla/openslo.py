"""OpenSLO documents as agreements: every field is honoured, or refused by its name and place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nephoscope.core.errors import PlanError, UsageError
from nephoscope.core.format_versions import CONTRACT
from nephoscope.core.reading import recordfile
from nephoscope.core.reading.sentences import Place, place_in
from nephoscope.features.sla.openslo_records import (
    KINDS,
    MEASURE,
    UNIT,
    IndicatorSpec,
    Sli,
    Slo,
    SloObjective,
    TimeWindow,
)
from nephoscope.features.sla.options import UNITS
from nephoscope.features.sla.terms import TIMED, TermsReading, exact_share

API = "openslo/v1"
_VERSIONS = (API, "openslo.com/v2alpha")
_DURATION = re.compile(r"([1-9][0-9]{0,5})([mhdwMQY])")
_LENGTHS = {"m": "min", "h": "h", "d": "d", "w": "w"}
CALENDAR_UNITS = {"d": "day", "w": "week", "M": "month", "Q": "quarter", "Y": "year"}


def is_document(values: Any) -> bool:
    """Returns whether these values claim to be an OpenSLO document."""
    return isinstance(values, Mapping) and str(values.get("apiVersion", "")).startswith("openslo")


@dataclass(frozen=True, slots=True)
class _Chosen:
    """An SLO, its indicator (None where that is in no document here), and the place of its keys."""

    slo: Slo
    indicator: IndicatorSpec | None
    place: Place
    unused_kinds: Counter[str]


def agreement_values(
    documents: Sequence[Any], text: str, name: str, reading: TermsReading
) -> dict[str, Any]:
    """Returns the values of an agreement for the SLO among the documents of a text.

    Raises PlanError for another version, for what is incomplete, and for what cannot be judged.
    """
    chosen = _chosen(documents, text, name, reading.slo)
    slo, spec = chosen.slo, chosen.slo.spec
    conversion = _Conversion(chosen, reading.unit or _annotated_unit(slo, chosen.place), name)
    objectives = [conversion.objective(*numbered) for numbered in enumerate(spec.objectives)]
    if reading.unit and not conversion.used_unit:
        raise UsageError(
            f"--unit {reading.unit}: no objective of {name} compares a value.", "Leave it out."
        )
    slug = re.sub(r"[^a-z0-9_-]+", "-", slo.metadata.name.lower())[:40].strip("-_")
    return {
        "sla": CONTRACT.version,
        "name": slug or "slo",
        "title": slo.metadata.display_name or slo.metadata.name,
        "source": name,
        "scope": spec.description,
        "service": spec.service,
        **_window(spec.time_window[0], chosen.place),
        "objectives": objectives,
        "notes": tuple(_notes(chosen, conversion)),
    }


def _chosen(documents: Sequence[Any], text: str, name: str, wanted: str) -> _Chosen:
    slos: dict[str, tuple[Slo, Place]] = {}
    indicators: dict[str, IndicatorSpec] = {}
    unused_kinds: Counter[str] = Counter()
    for number, values in enumerate(documents):
        if values is None:
            continue
        place = place_in(text, name, number)
        kind = _kind_of(values, place)
        if kind == "SLO":
            slo = recordfile.validated(values, Slo, place)
            slos[slo.metadata.name] = (slo, place)
        elif kind == "SLI":
            sli = recordfile.validated(values, Sli, place)
            indicators[sli.metadata.name] = sli.spec
        else:
            unused_kinds[kind] += 1
    if not slos:
        kinds = ", ".join([*sorted(unused_kinds), *(["SLI"] if indicators else [])])
        raise PlanError(
            f"{name}: there is no SLO among its OpenSLO documents ({kinds}).", "Add it."
        )
    if (wanted and wanted not in slos) or (not wanted and len(slos) > 1):
        what = f"has no SLO '{wanted[:80]}'" if wanted else f"has {len(slos)} SLOs"
        raise UsageError(f"{name} {what}.", f"Choose one with --slo: {', '.join(slos)}.")
    slo, place = slos[wanted or next(iter(slos))]
    spec = slo.spec
    if (spec.indicator is None) == (spec.indicator_ref is None) and not _composite(slo):
        raise PlanError(
            f"{place(('spec',))}an SLO has either 'indicator' or 'indicatorRef'.", "State one."
        )
    own = None if spec.indicator is None else spec.indicator.spec
    indicator = own or indicators.get(spec.indicator_ref or "")
    if indicator is not None and (indicator.ratio_metric is None) == (
        indicator.threshold_metric is None
    ):
        raise PlanError(
            f"{place(('spec',))}an indicator has either 'ratioMetric' or 'thresholdMetric'.",
            "State one.",
        )
    return _Chosen(slo, indicator, place, unused_kinds)


def _kind_of(values: Any, place: Place) -> str:
    """Returns the kind of a document. PlanError for another format, version or kind."""
    if not is_document(values):
        raise PlanError(
            f"{place(())}this document is not one of OpenSLO, as others of this file are.",
            "Put it into a file of its own.",
        )
    version, kind = (str(values.get(key))[:40] for key in ("apiVersion", "kind"))
    if version not in _VERSIONS:
        raise PlanError(
            f"{place(('apiVersion',))}OpenSLO documents of version {version} are not read.",
            f"Write it in version {API}: https://github.com/OpenSLO/OpenSLO.",
        )
    if kind not in KINDS:
        raise PlanError(
            f"{place(('kind',))}OpenSLO has no kind {kind}.", f"Kinds: {', '.join(KINDS)}."
        )
    return kind


def _composite(slo: Slo) -> str:
    """Returns the first key of a composite SLO, of several indicators; empty where it is none."""
    for entry in slo.spec.objectives:
        for key, value in (
            ("indicator", entry.indicator),
            ("indicatorRef", entry.indicator_ref),
            ("compositeWeight", entry.composite_weight),
        ):
            if value is not None:
                return key
    return ""


def _annotated_unit(slo: Slo, place: Place) -> str:
    unit = (slo.metadata.annotations or {}).get(UNIT, "")
    if unit and unit not in UNITS:
        raise PlanError(
            f"{place(('metadata', 'annotations', UNIT))}'{unit!s:.20}' is no unit of time.",
            f"Units: {', '.join(UNITS)}.",
        )
    return str(unit)


def _annotated_measure(chosen: _Chosen) -> str:
    """Returns the measure whose times a threshold metric has."""
    measure = (chosen.slo.metadata.annotations or {}).get(MEASURE, "response_time")
    if measure not in TIMED:
        raise PlanError(
            f"{chosen.place(('metadata', 'annotations', MEASURE))}'{measure!s:.40}' is no measure "
            "of a time.",
            f"Measures: {', '.join(TIMED)}.",
        )
    return str(measure)


def _parts(duration: str, place: str) -> tuple[int, str]:
    match = _DURATION.fullmatch(duration)
    if match is None:
        raise PlanError(
            f"{place}'{duration:.20}' is no duration of OpenSLO.",
            "Write a whole number and m (minutes), h, d, w, M (months), Q or Y, for example 28d.",
        )
    return int(match[1]), match[2]


def _length(duration: str, place: str, what: str) -> str:
    """Returns a length of fixed size as this program writes it."""
    number, unit = _parts(duration, place)
    if unit not in _LENGTHS:
        raise PlanError(
            f"{place}{what} of {duration} has no fixed length.",
            "Write it in days, for example 30d.",
        )
    return f"{7 * number}d" if unit == "w" else f"{number}{_LENGTHS[unit]}"


def _window(window: TimeWindow, place: Place) -> dict[str, Any]:
    """Returns period, first period and time zone."""
    at = ("spec", "timeWindow", 0)
    where = place((*at, "duration"))
    number, unit = _parts(window.duration, where)
    if unit == "m":
        raise PlanError(
            f"{where}a window of {window.duration} is {number} min in OpenSLO; a month is 1M.",
            "Correct the duration.",
        )
    if window.calendar is not None and window.is_rolling:
        raise PlanError(
            f"{place((*at, 'isRolling'))}a rolling window has no calendar.",
            "Leave out one of them.",
        )
    if window.calendar is None:
        if not window.is_rolling:
            raise PlanError(
                f"{place(at)}the window neither rolls nor has a calendar.",
                "Write isRolling: true, or calendar with startTime and timeZone.",
            )
        return {"period": _length(window.duration, where, "a rolling window")}
    name = CALENDAR_UNITS.get(unit)
    period = f"{number}h"
    if name is not None:
        period = name if number == 1 else f"{number} {name}s"
    return {
        "period": period,
        "first_period": window.calendar.start_time.strip().replace(" ", "T"),
        "time_zone": window.calendar.time_zone,
    }


class _Conversion:
    """Converts the objectives of an SLO.

    unused: keys that have no meaning. used_unit: whether a value is compared with response times.
    """

    def __init__(self, chosen: _Chosen, unit: str, name: str) -> None:
        self._chosen = chosen
        self._unit = unit
        self._name = name
        self.unused: dict[str, None] = {}
        self.used_unit = False

    def objective(self, number: int, entry: SloObjective) -> dict[str, Any]:
        """Returns the values of an objective. Raises PlanError with its place."""

        def at(key: str) -> str:
            return self._chosen.place(("spec", "objectives", number, key))

        if key := _composite(self._chosen.slo):
            raise PlanError(
                f"{at(key)}'{key}' makes a composite SLO of several indicators, which cannot be "
                "judged.",
                "Write an SLO for each indicator.",
            )
        target = _share_of(entry, at)
        limit = self._limit(entry, at)
        method = self._chosen.slo.spec.budgeting_method
        if method == "RatioTimeslices":
            where = self._chosen.place(("spec", "budgetingMethod"))
            raise PlanError(
                f"{where}RatioTimeslices (a mean of the ratios of all slices) cannot be judged.",
                "Use Occurrences or Timeslices.",
            )
        if method == "Timeslices":
            return {
                "measure": "availability",
                "target": target,
                **_slices(entry, at),
                **limit,
            }
        for key, value in (
            ("timeSliceTarget", entry.time_slice_target),
            ("timeSliceWindow", entry.time_slice_window),
        ):
            if value is not None:
                raise PlanError(
                    f"{at(key)}'{key}' has no meaning for Occurrences.",
                    "Leave it out, or use budgetingMethod: Timeslices.",
                )
        if limit:
            measure = _annotated_measure(self._chosen)
            return {"measure": measure, "target": target, "basis": "census", **limit}
        return {"measure": "loss", "at_most": str(1 - exact_share(target)), "basis": "census"}

    def _limit(self, entry: SloObjective, at: Any) -> dict[str, Any]:
        """Returns the limit of the response time of a threshold metric; nothing of a ratio."""
        indicator = self._chosen.indicator
        is_threshold = (
            entry.value is not None if indicator is None else indicator.ratio_metric is None
        )
        if not is_threshold:
            stated = (("op", entry.op), ("value", entry.value))
            self.unused |= {key: None for key, value in stated if value is not None}
            return {}
        if entry.op is None or entry.value is None:
            key = "op" if entry.op is None else "value"
            raise PlanError(f"{at(key)}a threshold metric needs '{key}'.", "Add it.")
        if entry.op not in ("lt", "lte"):
            raise PlanError(
                f"{at('op')}a threshold with op: {entry.op} cannot be judged: of events, only "
                "response times up to a limit are.",
                "Use lt or lte, or a ratioMetric.",
            )
        if not self._unit:
            raise PlanError(
                f"{at('value')}value: {entry.value:g} has no unit in OpenSLO.",
                f"If it is a response time, name its unit: --unit ms (or {', '.join(UNITS)}), or "
                f"the annotation {UNIT}: ms.",
            )
        self.used_unit = True
        return {"under" if entry.op == "lt" else "within": f"{entry.value!r}{self._unit}"}


def _share_of(entry: SloObjective, at: Any) -> str:
    if (entry.target is None) == (entry.target_percent is None):
        raise PlanError(
            f"{at('target')}an objective has either 'target' or 'targetPercent'.", "State one."
        )
    key, text = "target", f"{entry.target}"
    if entry.target is None:
        key, text = "targetPercent", f"{entry.target_percent}%"
    return _checked_share(text, at(key))


def _checked_share(text: str, where: str) -> str:
    try:
        return str(exact_share(text))
    except ValueError as error:
        raise PlanError(f"{where}{error}.", "Correct the value.") from None


def _slices(entry: SloObjective, at: Any) -> dict[str, Any]:
    for key, value in (
        ("timeSliceTarget", entry.time_slice_target),
        ("timeSliceWindow", entry.time_slice_window),
    ):
        if value is None:
            raise PlanError(f"{at(key)}Timeslices need '{key}'.", "Add it.")
    window, where = entry.time_slice_window, at("timeSliceWindow")
    # A number counts minutes.
    slot = _length(window, where, "a slice") if isinstance(window, str) else f"{window}min"
    good = exact_share(_checked_share(str(entry.time_slice_target), at("timeSliceTarget")))
    return {"slot": slot, "failed_above": str(1 - good)}


def _notes(chosen: _Chosen, conversion: _Conversion) -> Iterator[str]:
    """Yields sentences on what stands in the documents and does not decide the verdict."""
    spec = chosen.slo.spec
    if chosen.indicator is None:
        yield (
            f"The indicator {spec.indicator_ref} is in no document of this file; the events stand "
            "for it (ok: 1 is good)."
        )
    else:
        yield "The queries of the indicator are not run; the events stand for them (ok: 1 is good)."
    if conversion.unused:
        keys = " and ".join(conversion.unused)
        yield f"A ratioMetric is not compared with a value: {keys} of the objectives is not used."
    if spec.alert_policies:
        yield "The alert policies are not used."
    if chosen.unused_kinds:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(chosen.unused_kinds.items()))
        yield f"Other documents of the file are not used: {counts}."
