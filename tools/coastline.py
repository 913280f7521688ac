"""Thins the coastline of the report's map: TopoJSON of Natural Earth's land in, outlines out.

    npm pack world-atlas@2.0.2 && tar xzf world-atlas-2.0.2.tgz
    python3 tools/coastline.py package/land-110m.json src/nephoscope/report/static/coastline.json

A map half a metre wide shows no more than the third of a degree to which it is thinned (Douglas and
Peucker, Cartographica 10, 1973). Antarctica and what is smaller than a square degree are left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Point = tuple[float, float]

TOLERANCE_DEGREES = 0.35
LEAST_SQUARE_DEGREES = 1.0
SOUTH = -58.0
"""Outlines that lie wholly below it are left out: nobody is served there."""


def arcs_of(topology: dict[str, Any]) -> list[list[Point]]:
    """The arcs in degrees; TopoJSON stores differences of integers."""
    (sx, sy), (tx, ty) = topology["transform"]["scale"], topology["transform"]["translate"]
    out = []
    for arc in topology["arcs"]:
        x = y = 0
        points = []
        for dx, dy in arc:
            x, y = x + dx, y + dy
            points.append((x * sx + tx, y * sy + ty))
        out.append(points)
    return out


def rings_of(topology: dict[str, Any]) -> list[list[Point]]:
    """Every closed outline of the land, in the file's direction (holes turn the other way)."""
    arcs = arcs_of(topology)
    rings = []
    for geometry in topology["objects"]["land"]["geometries"]:
        polygons = geometry["arcs"] if geometry["type"] == "MultiPolygon" else [geometry["arcs"]]
        for ring in (ring for polygon in polygons for ring in polygon):
            points: list[Point] = []
            for number in ring:
                arc = arcs[number] if number >= 0 else arcs[~number][::-1]
                points += arc[1:] if points else arc
            rings.append(points)
    return rings


def within_the_map(ring: list[Point]) -> list[list[Point]]:
    """The outline as one or two that end at 180 degrees; a step across it goes the short way."""
    whole = [ring[0]]
    for x, y in ring[1:]:
        last = whole[-1][0]
        whole.append((x - 360 * round((x - last) / 360), y))
    parts = []
    for shift in (-360, 0, 360):
        moved = [(x + shift, y) for x, y in whole]
        part = _cut([(-x, y) for x, y in _cut(moved)])
        if part:
            parts.append([(-x, y) for x, y in part])
    return parts


def _cut(ring: list[Point]) -> list[Point]:
    """What of a closed outline lies west of 180 degrees (Sutherland and Hodgman, CACM 17, 1974)."""
    out: list[Point] = []
    for (x0, y0), (x1, y1) in zip(ring, ring[1:] + ring[:1], strict=True):
        if x0 <= 180:
            out.append((x0, y0))
        if (x0 <= 180) != (x1 <= 180):
            out.append((180.0, y0 + (180 - x0) * (y1 - y0) / (x1 - x0)))
    return [*out, out[0]] if out and out[0] != out[-1] else out


def thinned(points: list[Point], tolerance: float) -> list[Point]:
    """The line without the points that lie within the tolerance of what is left."""
    keep = {0, len(points) - 1}
    spans = [(0, len(points) - 1)]
    while spans:
        first, last = spans.pop()
        inside = range(first + 1, last)
        far = max(inside, key=lambda i: _off(points[i], points[first], points[last]), default=None)
        if far is not None and _off(points[far], points[first], points[last]) > tolerance:
            keep.add(far)
            spans += [(first, far), (far, last)]
    return [points[i] for i in sorted(keep)]


def _off(point: Point, start: Point, end: Point) -> float:
    """Distance of a point from a segment, which may be a single point."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = dx * dx + dy * dy
    along = ((point[0] - start[0]) * dx + (point[1] - start[1]) * dy) / length if length else 0.0
    along = min(1.0, max(0.0, along))
    x, y = start[0] + along * dx, start[1] + along * dy
    return float(((point[0] - x) ** 2 + (point[1] - y) ** 2) ** 0.5)


def area(points: list[Point]) -> float:
    """Square degrees inside an outline (the shoelace formula)."""
    pairs = zip(points, points[1:] + points[:1], strict=True)
    return abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in pairs)) / 2


def main(source: Path, target: Path) -> None:
    """Writes the outlines as lists of longitude, latitude, … in tenths of a degree."""
    topology = json.loads(source.read_text(encoding="utf-8"))
    rings = [
        thinned(ring, TOLERANCE_DEGREES)
        for whole in rings_of(topology)
        for ring in within_the_map(whole)
        if area(ring) >= LEAST_SQUARE_DEGREES and max(y for _, y in ring) > SOUTH
    ]
    flat = [[round(10 * part) for point in ring for part in point] for ring in rings]
    lines = ",\n".join(json.dumps(ring, separators=(",", ":")) for ring in flat)
    target.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{len(flat)} outlines, {sum(map(len, flat)) // 2} points")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: coastline.py LAND_TOPOJSON TARGET")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
