"""Mean times of boots with their intervals.

Means, because the mean segments of a boot add up to its mean time, as medians would not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nephoscope.core.model import Estimate
from nephoscope.features.platforms.records import MARKS, Boot, BootFigures
from nephoscope.stats.statistics.means import mean_of_skewed


def figures(
    name: str,
    boots: Sequence[Boot],
    reasons: Mapping[str, str],
    failures: Sequence[str] = (),
    *,
    expected: Sequence[str] = MARKS,
    confidence: float = 0.95,
) -> BootFigures:
    """Returns the figures of a platform's boots, each of which is one repetition.

    reasons: why a mark is missing, where the platform says so. A mark that some boots lack is left
    out, so that the segments of all boots are the same ones. expected: marks in order, of which the
    last is the end of a boot.
    """
    why = dict(reasons)
    seen = {mark: sum(mark in boot.marks_ns for boot in boots) for mark in expected}
    for mark, count in seen.items():
        if 0 < count < len(boots):
            why[mark] = (
                f"it was told apart from the next mark in {count} of {len(boots)} boots only"
            )
        elif not count:
            why.setdefault(mark, "no boot was measured" if not boots else "it was not seen")
    present = [mark for mark in expected if boots and seen[mark] == len(boots)]

    def mean(values: Sequence[float], unit: str) -> Estimate:
        return mean_of_skewed(values, unit=unit, confidence=confidence, least=0.0)

    before = [0] * len(boots)
    marks, segments = {}, {}
    for mark in present:
        at = [boot.marks_ns[mark] for boot in boots]
        marks[mark] = mean(at, "ns")
        segments[mark] = mean([end - start for end, start in zip(at, before, strict=True)], "ns")
        before = at
    memory = [boot.memory_bytes for boot in boots if boot.memory_bytes is not None]
    if not memory:
        why.setdefault(
            "memory", "it has no process of its own" if boots else "no boot was measured"
        )
    return BootFigures(
        name,
        marks,
        segments,
        mean(memory, "bytes") if memory else None,
        {
            mark: text
            for mark, text in why.items()
            if mark not in marks and (mark != "memory" or not memory)
        },
        max((boot.resolution_ns for boot in boots), default=None),
        tuple(failures),
    )
