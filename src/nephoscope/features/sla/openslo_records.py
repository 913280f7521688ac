"""The fields of OpenSLO documents; a field that is not here is refused by name.

Specification: https://github.com/OpenSLO/OpenSLO (openslo/v1, and openslo.com/v2alpha, where the
indicator is called sli). Parts that the verdict does not need may hold anything: queries of
indicators, connections of data sources, alert policies.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AliasChoices, Field

from nephoscope.core.reading.fields import Record

UNIT = "nephoscope/unit"
"""Annotation of an SLO: unit of the values that its objectives compare response times with."""

MEASURE = "nephoscope/measure"
"""Annotation of an SLO with a threshold metric: `scaling_time` where it is no response time."""

KINDS = (
    "SLO",
    "SLI",
    "Service",
    "DataSource",
    "AlertPolicy",
    "AlertCondition",
    "AlertNotificationTarget",
)

_INDICATOR = AliasChoices("indicator", "sli")
_INDICATOR_REF = AliasChoices("indicatorRef", "sliRef")


class Metadata(Record):
    """Names and labels of an object."""

    name: str = Field(min_length=1)
    display_name: str = Field(default="", alias="displayName")
    labels: Any = None
    annotations: dict[str, Any] | None = None


class Ratio(Record):
    """Good (or bad) of all events, or a ratio that the source has computed."""

    counter: bool | None = None
    good: Any = None
    bad: Any = None
    total: Any = None
    raw_type: Literal["success", "failure"] | None = Field(default=None, alias="rawType")
    raw: Any = None


class IndicatorSpec(Record):
    """How an indicator is measured: a ratio, or a metric that objectives compare with a value."""

    description: str = ""
    threshold_metric: Any = Field(default=None, alias="thresholdMetric")
    ratio_metric: Ratio | None = Field(default=None, alias="ratioMetric")


class Indicator(Record):
    """An indicator inside of an SLO."""

    metadata: Metadata | None = None
    spec: IndicatorSpec


class Calendar(Record):
    """Start of the first window in local time of a zone."""

    start_time: str = Field(alias="startTime")
    time_zone: str = Field(alias="timeZone")


class TimeWindow(Record):
    """Window of a length, which rolls or follows others from a start."""

    duration: str
    is_rolling: bool | None = Field(default=None, alias="isRolling")
    calendar: Calendar | None = None


class SloObjective(Record):
    """A target; with a threshold metric also an operator and a value."""

    display_name: str = Field(default="", alias="displayName")
    labels: Any = None
    op: Literal["lt", "lte", "gt", "gte"] | None = None
    value: float | None = None
    target: Any = None
    target_percent: Any = Field(default=None, alias="targetPercent")
    time_slice_target: Any = Field(default=None, alias="timeSliceTarget")
    time_slice_window: int | float | str | None = Field(default=None, alias="timeSliceWindow")
    indicator: Any = Field(default=None, validation_alias=_INDICATOR)
    indicator_ref: Any = Field(default=None, validation_alias=_INDICATOR_REF)
    composite_weight: Any = Field(default=None, alias="compositeWeight")


class SloSpec(Record):
    """The content of an SLO."""

    description: str = ""
    service: str = ""
    indicator: Indicator | None = Field(default=None, validation_alias=_INDICATOR)
    indicator_ref: str | None = Field(default=None, validation_alias=_INDICATOR_REF)
    time_window: tuple[TimeWindow, ...] = Field(alias="timeWindow", min_length=1, max_length=1)
    budgeting_method: Literal["Occurrences", "Timeslices", "RatioTimeslices"] = Field(
        alias="budgetingMethod"
    )
    objectives: tuple[SloObjective, ...] = Field(min_length=1, max_length=100)
    alert_policies: Any = Field(default=None, alias="alertPolicies")


class Slo(Record):
    """An SLO document."""

    api_version: str = Field(alias="apiVersion")
    kind: str
    metadata: Metadata
    spec: SloSpec


class Sli(Record):
    """A document of an indicator to which SLOs refer."""

    api_version: str = Field(alias="apiVersion")
    kind: str
    metadata: Metadata
    spec: IndicatorSpec
