"""A study's figures, drawn with our values, and its own numbers beside them where it gives any."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nephoscope.analysis.compare import estimate_json
from nephoscope.model import Estimate, RunResult
from nephoscope.studies import ours, theirs
from nephoscope.studies.picks import Pick
from nephoscope.studies.records import Part
from nephoscope.studies.shelf import Shelf
from nephoscope.studies.shown import Curve, Drawing

Place = float | str


@dataclass(frozen=True, slots=True)
class Drawn:
    """One curve of ours: places on the axis and what stands there. samples have no interval."""

    name: str
    x: tuple[Place, ...]
    y: tuple[float, ...]
    estimates: tuple[Estimate, ...] = ()
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Theirs:
    """A published number in the figure, with its interval where the text gives enough."""

    x: Place
    curve: str
    value: float
    low: float | None
    high: float | None
    n: int | None
    source: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure of the study with ours in it."""

    part: str
    drawing: Drawing
    curves: tuple[Drawn, ...]
    points: tuple[Theirs, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """The object of study.json."""
        drawing = self.drawing
        return {
            "part": self.part,
            "id": drawing.id,
            "figure": drawing.figure,
            "title": drawing.title,
            "kind": drawing.kind,
            "x": drawing.x,
            "y": drawing.y,
            "unit": drawing.unit,
            "why": drawing.why,
            "curves": [
                {
                    "name": one.name,
                    "x": list(one.x),
                    "y": list(one.y),
                    "estimates": [estimate_json(estimate) for estimate in one.estimates],
                    "absent": list(one.absent),
                }
                for one in self.curves
            ],
            "theirs": [
                {
                    "x": one.x,
                    "curve": one.curve,
                    "value": one.value,
                    "low": one.low,
                    "high": one.high,
                    "n": one.n,
                    "source": one.source,
                }
                for one in self.points
            ],
        }


def draw(shelf: Shelf, part: Part, result: RunResult) -> list[Picture]:
    """Every figure of the part, from a run of its plan."""
    return [_picture(shelf, part, drawing, result) for drawing in part.drawings]


def _picture(shelf: Shelf, part: Part, drawing: Drawing, result: RunResult) -> Picture:
    curve = _samples if drawing.kind == "samples" else _levels
    curves = tuple(curve(drawing, name, pick, result) for name, pick in drawing.curves.items())
    points = []
    for point in drawing.points:
        figure = theirs.figure(shelf, point.theirs)
        assert figure.value is not None, "a point is no order"
        points.append(
            Theirs(
                point.x,
                point.curve,
                figure.value,
                figure.low,
                figure.high,
                figure.n,
                figure.source,
            )
        )
    return Picture(part.name, drawing, curves, tuple(points))


def _samples(drawing: Drawing, name: str, pick: Curve, result: RunResult) -> Drawn:
    try:
        found = ours.values(result, drawing.ours, pick)
    except ours.Absent as error:
        return Drawn(name, (), (), absent=(str(error),))
    return Drawn(name, tuple(float(number) for number in range(1, len(found) + 1)), tuple(found))


def _levels(drawing: Drawing, name: str, pick: Curve, result: RunResult) -> Drawn:
    places: list[Place] = []
    found: list[Estimate] = []
    absent: list[str] = []
    for level, place in (pick.levels or drawing.levels).items():
        try:
            found.append(_at(drawing, _with(pick, drawing.along, level), result))
            places.append(place)
        except ours.Absent as error:
            absent.append(f"{place}: {error}")
    return Drawn(
        name, tuple(places), tuple(one.value for one in found), tuple(found), tuple(absent)
    )


def _at(drawing: Drawing, pick: Pick, result: RunResult) -> Estimate:
    if drawing.over is None:
        return ours.value(result, drawing.ours, pick)
    # The baseline of a curve is the curve's own, at the level of `over`.
    under = pick.model_copy(update={"factors": {**pick.factors, **drawing.over.factors}})
    return ours.ratio(result, drawing.ours, pick, under)


def _with(curve: Curve, factor: str, level: str) -> Pick:
    return curve.model_copy(update={"factors": {**curve.factors, factor: level}})
