"""Predicted rates of server types as a section."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from nephoscope.core import units
from nephoscope.features.market.prediction_records import (
    HoldOutCheck,
    PredictedType,
    TypePrediction,
)
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Column, Section, Sentence, items
from nephoscope.report.columns import count, number, ratio, table, text

_CHECKED = 12
"""Groups of a check that are listed; the largest."""


def prediction_section(result: TypePrediction) -> Section:
    """Returns the section."""
    return Section("prediction", "Predicted server types", tuple(_blocks(result)))


def _blocks(result: TypePrediction) -> Iterator[Block]:
    yield Sentence(_answer(result), lead=True)
    yield from map(Sentence, result.caveats)
    yield Sentence(
        f"Predicted from small benchmarks of {result.trained_on:,} measured types. "
        f"{_coverage(result)} {result.lacks}"
    )
    if result.types:
        yield _types(result)
    for grouping, checks in result.checks.items():
        first = sorted(checks, key=_order(result.confidence))[:_CHECKED]
        covered: tuple[Column[HoldOutCheck], ...] = ratio(
            "inside their intervals", lambda check: check.coverage
        )
        yield table(
            first,
            text(grouping, lambda check: wording.clean(check.group)),
            count("types", lambda check: check.coverage.n),
            *covered[:2],
            number("median error", lambda check: _percent(check.error)),
            number("half width", lambda check: f"±{_percent(check.half_width)}"),
            caption=f"Each {grouping} predicted from all others{_which(checks, result)}:",
        )
    yield from items(_notes(result))


def _is_covered_less(check: HoldOutCheck, confidence: float) -> bool:
    """States whether the whole interval of a group's coverage is below the confidence."""
    return check.coverage.high is not None and check.coverage.high < confidence


def _order(confidence: float) -> Callable[[HoldOutCheck], tuple[float, int]]:
    """Returns the order of groups: those that are covered less, the least first; then by size."""
    return lambda check: (
        check.coverage.value if _is_covered_less(check, confidence) else 1.0,
        -check.coverage.n,
    )


def _which(checks: Sequence[HoldOutCheck], result: TypePrediction) -> str:
    is_less = any(_is_covered_less(check, result.confidence) for check in checks)
    return ", first those that are covered less than promised" if is_less else ""


def _coverage(result: TypePrediction) -> str:
    """Returns what the intervals promise: no more than the predictions of left-out groups show."""
    share = _percent(result.confidence)
    names = wording.joined(f"{grouping}s" for grouping in result.checks)
    parts, worse = [], 0
    for grouping, checks in result.checks.items():
        less = [each for each in checks if _is_covered_less(each, result.confidence)]
        part = f"{len(less) or 'none'} of {wording.plural(len(checks), grouping)}"
        worse += len(less)
        if less:
            least = min(less, key=lambda check: check.coverage.value)
            covered = _percent(round(least.coverage.value, 2))
            part += f" (at worst {wording.clean(least.group)}: {covered})"
        parts.append(part)
    mean = f"The intervals cover {share} of the types in the mean over left-out {names}"
    less_of = f"{wording.joined(parts)} are covered significantly less, if types err independently."
    return f"{mean}, but not of each one: {less_of}" if worse else f"{mean}; {less_of}"


def _types(result: TypePrediction) -> Block:
    has_measured = any(each.measured is not None for each in result.types)
    measured: list[Column[PredictedType]] = [
        number(
            "measured",
            lambda row: None if row.measured is None else _rate(row.measured, result),
        )
    ]
    return table(
        result.types,
        text("type", _name),
        text("CPU model", lambda row: wording.clean(row.cpu_model)),
        number(
            "predicted",
            lambda row: "none" if row.predicted is None else _rate(row.predicted.value, result),
        ),
        number(
            "interval",
            lambda row: "" if row.predicted is None else wording.interval_text(row.predicted),
        ),
        *(measured if has_measured else ()),
    )


def _name(row: PredictedType) -> str:
    return wording.clean(f"{row.provider}/{row.type}".strip("/"))


def _growth(factor: float) -> str:
    return f"{100 * (factor - 1):+.0f} %" if factor < 2 else f"{units.format_number(factor)} times"


def _rate(value: float, result: TypePrediction) -> str:
    return units.format_value(value, result.unit)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _answer(result: TypePrediction) -> str:
    first = next((each for each in result.types if each.predicted is not None), None)
    if not result.types:
        return f"Every imported type has a figure of {result.title}; name some to see them checked."
    if first is None or first.predicted is None:
        return f"There is no prediction of {result.title} for {_name(result.types[0])}: " + (
            f"{result.types[0].reason}."
        )
    name = _name(first)
    best = "would do" if result.types_in_all == 1 else "is predicted as the fastest:"
    return f"{name} {best} {wording.estimate_text(first.predicted)} of {result.title}."


def _notes(result: TypePrediction) -> Iterator[str]:
    if result.types_in_all > len(result.types):
        more = result.types_in_all - len(result.types)
        yield f"{wording.plural(more, 'more type')} with a prediction; --top shows more."
    for place, each in enumerate(result.types):
        # The first sentence of the page has the reason of the first type.
        if each.predicted is None and place:
            yield f"{_name(each)} has no prediction: {each.reason}."
    if result.carried_by:
        shares = [f"{name} ({_growth(factor)})" for name, factor in result.carried_by.items()]
        yield f"By how much the error grows without each source: {', '.join(shares)}."
    if result.not_measured:
        yield (
            f"Not measured on this machine: {wording.joined(result.not_measured)}. What is left "
            "predicts with the errors above; `nephoscope survey --comparable` measures more, and "
            "--figures takes what other programs measured."
        )
    for reason, types in result.left_out.items():
        yield f"Not used: {wording.plural(types, 'type')} {reason}."
