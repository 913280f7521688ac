"""What other runs of the same machine measured: how much this machine varies from run to run."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice

from nephoscope.features.comparison import settings
from nephoscope.features.comparison.result import LineKey
from nephoscope.results import lines, names
from nephoscope.results.analyse_run import DEFAULT_CONFIDENCE
from nephoscope.results.lines import Key
from nephoscope.stats import facts
from nephoscope.store import FINISHED, Store, StoredRun, query

MAX_RUNS = 12
"""Newest other runs that are read: the variance between runs is known well enough by then."""


class History:
    """Medians of a line in other finished runs of the machine that `stored` ran on.

    A machine is the same when its fingerprint's machine_id_hash is; without one (hidden), there
    is no history, and the comparison says what that costs.
    """

    def __init__(self, store: Store, stored: StoredRun, left_out: set[str]) -> None:
        self._store = store
        self._stored = stored
        self._left_out = left_out

    def __call__(self, key: LineKey, target: str) -> Sequence[float]:
        """One median for each other run that holds this line."""
        machine = machine_of(self._stored, target)
        return self._values.get((machine, key), []) if machine else []

    @cached_property
    def _values(self) -> dict[tuple[str, LineKey], list[float]]:
        machines = {machine_of(self._stored, name) for name in _targets(self._stored)} - {""}
        collected: dict[tuple[str, LineKey], list[float]] = {}
        own = settings.settings_of(self._stored.records())
        runs = (
            run
            for run in reversed(self._store.runs())
            if run.state == FINISHED
            and run.id not in self._left_out
            and machines & {machine_of(run, name) for name in _targets(run)}
        )
        for run in islice(runs, MAX_RUNS):
            # What was measured with other parameters says nothing about this variance.
            otherwise = settings.measured_otherwise(own, settings.settings_of(run.records()))
            for key, values in _trial_values(run):
                machine = machine_of(run, key.target)
                if machine in machines and values and key.benchmark not in otherwise:
                    line = (key.benchmark, key.metric, key.factors)
                    collected.setdefault((machine, line), []).append(statistics.median(values))
        return collected


def _trial_values(run: StoredRun) -> Iterator[tuple[Key, Sequence[float]]]:
    """The trial values of every line of a run, without the intervals that cost time."""
    place = {record.key.name: record.position for record in run.records()}
    for key, group in lines.group_scalars(query.trial_medians(run), place).items():
        yield key, group.values
    for key, distribution in lines.group_histograms(query.histograms(run), place).items():
        for quantile in lines.PERCENTILES:
            metric = names.percentile_metric(key.metric, distribution.unit, quantile)
            yield (
                key._replace(metric=metric),
                lines.trial_percentiles(
                    distribution.values, quantile, DEFAULT_CONFIDENCE, distribution.unanswered
                ),
            )


def _targets(run: StoredRun) -> list[str]:
    return list(run.manifest.target_names)


def machine_of(run: StoredRun, target: str) -> str:
    """The hash that tells machines apart; empty where the fingerprint hides it."""
    known = run.manifest.fingerprints.get(target)
    return facts.text(known, "identity.machine_id_hash") or ""
