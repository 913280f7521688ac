"""Fills a study's figures with measured values, beside the published numbers of the text."""

from __future__ import annotations

from nephoscope.core.model import Estimate, RunResult
from nephoscope.core.records import dataclass
from nephoscope.features.studies.catalogue import ReferenceStudy
from nephoscope.features.studies.comparison import measured
from nephoscope.features.studies.comparison.published import ReferenceFigure, compute_figure
from nephoscope.features.studies.definition.layouts import FigureCurve, FigureLayout
from nephoscope.features.studies.definition.study import Part

Position = float | str


@dataclass(frozen=True, slots=True)
class MeasuredCurve:
    """One curve: positions on the axis and values there. Samples have no estimates."""

    name: str
    x: tuple[Position, ...]
    y: tuple[float, ...]
    estimates: tuple[Estimate, ...] = ()
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedPoint:
    """A published number in the figure, with its interval where the text gives enough."""

    x: Position
    curve: str
    value: float
    figure: ReferenceFigure


@dataclass(frozen=True, slots=True)
class FilledFigure:
    """A figure of the study with measured curves and published points."""

    part: str
    layout: FigureLayout
    curves: tuple[MeasuredCurve, ...]
    points: tuple[PublishedPoint, ...] = ()


def fill_figures(study: ReferenceStudy, part: Part, result: RunResult) -> list[FilledFigure]:
    """Returns every figure of the part, filled from a run of its plan."""
    return [
        FilledFigure(
            part.name,
            layout,
            tuple(_curve(layout, name, curve, result) for name, curve in layout.curves.items()),
            tuple(_points(study, layout)),
        )
        for layout in part.figures
    ]


def _points(study: ReferenceStudy, layout: FigureLayout) -> list[PublishedPoint]:
    points = []
    for point in layout.points:
        figure = compute_figure(study, point.published)
        assert figure.value is not None, "a point is no order"
        points.append(PublishedPoint(point.x, point.curve, figure.value, figure))
    return points


def _curve(layout: FigureLayout, name: str, curve: FigureCurve, result: RunResult) -> MeasuredCurve:
    if layout.kind == "samples":
        try:
            values = measured.trial_values(result, layout.measured, curve)
        except measured.Absent as error:
            return MeasuredCurve(name, (), (), absent=(str(error),))
        numbers = tuple(float(number) for number in range(1, len(values) + 1))
        return MeasuredCurve(name, numbers, tuple(values))
    positions: list[Position] = []
    estimates: list[Estimate] = []
    absent: list[str] = []
    for level, position in (curve.levels or layout.levels).items():
        try:
            estimates.append(_at_level(layout, curve, level, result))
            positions.append(position)
        except measured.Absent as error:
            absent.append(f"{position}: {error}")
    values_y = tuple(estimate.value for estimate in estimates)
    return MeasuredCurve(name, tuple(positions), values_y, tuple(estimates), tuple(absent))


def _at_level(layout: FigureLayout, curve: FigureCurve, level: str, result: RunResult) -> Estimate:
    factors = {**curve.factors, layout.factor: level}
    selection = curve.model_copy(update={"factors": factors})
    if layout.baseline is None:
        return measured.value(result, layout.measured, selection)
    # The baseline of a curve is the curve's own, at the level that the figure names.
    below = curve.model_copy(update={"factors": {**factors, **layout.baseline.factors}})
    return measured.ratio(result, layout.measured, selection, below)
