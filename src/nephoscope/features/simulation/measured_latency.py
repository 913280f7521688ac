"""Latencies of a scenario from round trips that were measured: those of a run in the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nephoscope.catalog import instruments
from nephoscope.core.errors import UsageError
from nephoscope.core.model import stored_ends

BENCHMARK, METRIC = instruments.NET_RTT, "rtt_ns"
DRAWN = 200
"""Round trips that stand for a pair: at equally spaced quantiles, so that their shape is kept."""

_LISTED = 5
"""As many pairs are named in a sentence."""


def latency(name: str, store: Path | None) -> dict[str, Any]:
    """The `latency` of a scenario: for each pair of targets of the run, round trips in ms.

    Places of the scenario have to bear the targets' names, or lie in regions that do. Raises
    UsageError for a run without round trips.
    """
    from nephoscope.store import Store, query

    run = Store(store).open(name)
    ends = stored_ends(run.manifest.settings)
    settings_of = {record.key.name: record.key.setting for record in run.records()}
    pairs: dict[str, dict[str, dict[float, int]]] = {}
    for histogram in query.histograms(run):
        if (histogram.benchmark, histogram.metric) != (BENCHMARK, METRIC):
            continue
        near, far = ends(settings_of[histogram.trial], histogram.target)
        seen = pairs.setdefault(near, {}).setdefault(far, {})
        buckets = zip(histogram.values.tolist(), histogram.counts.tolist(), strict=True)
        for value, count in buckets:
            seen[value] = seen.get(value, 0) + count
    if not pairs:
        raise UsageError(
            f"Run {run.id} has no round-trip times.",
            f"Measure {BENCHMARK} between the locations first, with a plan for `nephoscope run`.",
        )
    return {
        "measured": {
            near: {far: _quantiles(seen) for far, seen in values_by_place.items()}
            for near, values_by_place in pairs.items()
        }
    }


def unmeasured(values: Mapping[str, Any], latency: Mapping[str, Any], run: str) -> list[str]:
    """A sentence where the run lacks some pair of user base and site: it is not connected then.

    values: the scenario. latency: as `latency` gives it. Raises UsageError for a user base that
    would have no way to any site.
    """
    measured = {
        frozenset((near, far))
        for near, far_places in latency["measured"].items()
        for far in far_places
    }
    sites = {name: _words(name, site) for name, site in _named(values, "sites")}
    lacking: list[str] = []
    for name, base in _named(values, "user_bases"):
        own = _words(name, base)
        missing = [
            site
            for site, words in sites.items()
            if not any(
                frozenset((word, far_word)) in measured for word in own for far_word in words
            )
        ]
        if sites and len(missing) == len(sites):
            raise UsageError(
                f"Run {run} has no round-trip times between the user base '{name}' and any site.",
                f"It has round-trip times between {_pairs_text(measured)}. Locations or regions of "
                "the scenario must have the names of the run's targets.",
            )
        lacking += [f"{name} and {site}" for site in missing]
    if not lacking:
        return []
    more = f" and {len(lacking) - _LISTED} more pairs" if len(lacking) > _LISTED else ""
    return [
        f"Run {run} has no round-trip times between {', '.join(lacking[:_LISTED])}{more}; "
        "they are not connected in this simulation."
    ]


def _named(values: Mapping[str, Any], key: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Places by name; what is written wrongly is left to the simulator's own words."""
    entries = values.get(key)
    if not isinstance(entries, Mapping):
        return []
    return [(str(name), entry) for name, entry in entries.items() if isinstance(entry, Mapping)]


def _words(name: str, place: Mapping[str, Any]) -> set[str]:
    """Returns what a place may be called in the run: its name, or its region's."""
    region = place.get("region")
    return {name} if region is None else {name, str(region)}


def _pairs_text(measured: Iterable[frozenset[str]]) -> str:
    pairs = sorted(" and ".join(sorted(pair)) if len(pair) > 1 else min(pair) for pair in measured)
    more = f", and {len(pairs) - _LISTED} more" if len(pairs) > _LISTED else ""
    return f"{', '.join(pairs[:_LISTED])}{more}"


def _quantiles(seen: Mapping[float, int]) -> list[float]:
    """Milliseconds at the middles of equal parts of all round trips."""
    import numpy as np

    values = np.array(sorted(seen))
    counts = np.array([seen[value] for value in values])
    parts = min(DRAWN, int(counts.sum()))
    wanted = (np.arange(parts) + 0.5) / parts * counts.sum()
    quantiles = values[np.searchsorted(np.cumsum(counts), wanted)]
    return [round(float(value) / 1e6, 6) for value in quantiles]
