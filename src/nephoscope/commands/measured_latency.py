"""Latencies of a scenario from round trips that were measured: those of a run in the store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nephoscope.errors import UsageError

BENCHMARK, METRIC = "net.rtt", "rtt_ns"
DRAWN = 200
"""Round trips that stand for a pair: at equally spaced quantiles, so that their shape is kept."""


def latency(name: str, store: Path | None) -> dict[str, Any]:
    """The `latency` of a scenario: for each pair of targets of the run, round trips in ms.

    Places of the scenario have to bear the targets' names, or lie in regions that do. Raises
    UsageError for a run without round trips.
    """
    from nephoscope import catalog, plans
    from nephoscope.store import Store, query

    run = Store(store).open(name)
    plan = plans.Plan.model_validate(run.manifest["plan"])
    peers = {one.index: one.peer for one in plans.expand(plan, catalog.load())}
    settings = {record.key.name: record.key.setting for record in run.records()}
    pairs: dict[str, dict[str, dict[float, int]]] = {}
    for one in query.histograms(run):
        if (one.benchmark, one.metric) != (BENCHMARK, METRIC):
            continue
        peer = peers.get(settings[one.trial], "")
        seen = pairs.setdefault(one.target, {}).setdefault(peer, {})
        for value, count in zip(one.values, one.counts, strict=True):
            seen[value] = seen.get(value, 0) + count
    if not pairs:
        raise UsageError(
            f"The run {run.id} has no round trips.",
            f"Measure {BENCHMARK} between the places first: `nephoscope run` with a plan of it.",
        )
    return {
        "measured": {
            near: {far: _quantiles(seen) for far, seen in others.items()}
            for near, others in pairs.items()
        }
    }


def _quantiles(seen: Mapping[float, int]) -> list[float]:
    """Milliseconds at the middles of equal parts of all round trips."""
    import numpy as np

    values = np.array(sorted(seen))
    counts = np.array([seen[value] for value in values])
    parts = min(DRAWN, int(counts.sum()))
    wanted = (np.arange(parts) + 0.5) / parts * counts.sum()
    found = values[np.searchsorted(np.cumsum(counts), wanted)]
    return [round(float(value) / 1e6, 6) for value in found]
