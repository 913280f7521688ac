"""The percentile spectrum that wrk2 prints with --latency: the histogram at its printed steps."""

from __future__ import annotations

import re

from nephoscope.store.imports.rows import ImportedHistogram

_HEAD = re.compile(r"^ *Value +Percentile +TotalCount +1/\(1-Percentile\)$", re.MULTILINE)
_ROW = re.compile(r" *([0-9]{1,15}(?:\.[0-9]{1,6})?) +([01]\.[0-9]{1,15}) +([0-9]{1,18})(?: +\S+)?")
STEPS = "wrk2 prints its histogram in steps: percentiles of merged files are the next higher step."


def is_wrk2(text: str) -> bool:
    """States whether a report of wrk is one of wrk2, whose requests have set times."""
    return "HdrHistogram - Recorded Latency" in text or "Thread calibration" in text


def spectrum(text: str) -> ImportedHistogram | None:
    """Returns the values in ms, each with the number of requests since the step below it.

    None where a report has no spectrum. ValueError for one whose counts fall.
    """
    head = _HEAD.search(text)
    if head is None:
        return None
    counts: dict[float, int] = {}
    before = 0
    for line in text[head.end() :].splitlines():
        match = _ROW.fullmatch(line)
        if match is None:
            if counts and line.strip():
                break
            continue
        value, total = float(match[1]), int(match[3])
        if total < before:
            raise ValueError("the counts of the percentile spectrum fall")
        if total > before:
            counts[value] = counts.get(value, 0) + total - before
        before = total
    return ImportedHistogram(counts) if counts else None
