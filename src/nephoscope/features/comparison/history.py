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
from nephoscope.results.lines import LineId
from nephoscope.stats import facts
from nephoscope.store import FINISHED, Store, StoredRun, query

MAX_RUNS = 12
"""Newest other runs that are read: the variance between runs is known well enough by then."""


class LineHistory:
    """Medians of a line in other finished runs of the machine that `stored` ran on, and of its kin.

    A machine is the same when its fingerprint's machine_id_hash is; without one (hidden), there
    is no history, and the comparison says what that costs. Its kin are the other machines of its
    class (`class_of`).
    """

    def __init__(self, store: Store, stored: StoredRun, left_out: set[str]) -> None:
        self._store = store
        self._stored = stored
        self._left_out = left_out

    def __call__(self, key: LineKey, target: str) -> Sequence[float]:
        """One median for each other run of this machine that holds this line."""
        machine = machine_of(self._stored, target)
        return self._values.get(key, {}).get(("", machine), []) if machine else []

    def kin(self, key: LineKey, target: str) -> list[list[float]]:
        """The medians of other machines of the class, in groups that vary about one mean each.

        Those of a machine with several runs are a group; single runs of several machines are one,
        whose variance includes that between machines.
        """
        own, known = class_of(self._stored, target), machine_of(self._stored, target)
        if not own:
            return []
        groups = [
            medians
            for (of_class, machine), medians in self._values.get(key, {}).items()
            if of_class == own and machine != known
        ]
        single = [median for group in groups if len(group) == 1 for median in group]
        return [group for group in (*groups, single) if len(group) > 1]

    @cached_property
    def _values(self) -> dict[LineKey, dict[tuple[str, str], list[float]]]:
        """Medians by line, and then by class and machine: of the same machine the class is ''."""
        names = _targets(self._stored)
        machines = {machine_of(self._stored, name) for name in names} - {""}
        classes = {class_of(self._stored, name) for name in names} - {""}
        collected: dict[LineKey, dict[tuple[str, str], list[float]]] = {}
        own = settings.settings_of(self._stored.records())
        finished = [
            run
            for run in reversed(self._store.runs())
            if run.state == FINISHED and run.id not in self._left_out
        ]
        runs = (run for run in finished if machines & {machine_of(run, t) for t in _targets(run)})
        akin = (
            run
            for run in finished
            if classes & {class_of(run, t) for t in _targets(run)}
            and not machines & {machine_of(run, t) for t in _targets(run)}
        )
        for run in (*islice(runs, MAX_RUNS), *islice(akin, MAX_RUNS)):
            # What was measured with other parameters says nothing about this variance.
            otherwise = settings.measured_otherwise(own, settings.settings_of(run.records()))
            for key, values in _trial_values(run):
                if not values or key.benchmark in otherwise:
                    continue
                machine = machine_of(run, key.target) or f"{run.id}:{key.target}"
                group = ("" if machine in machines else class_of(run, key.target), machine)
                line = (key.benchmark, key.metric, key.factors)
                of_line = collected.setdefault(line, {})
                of_line.setdefault(group, []).append(statistics.median(values))
        return collected


def class_of(run: StoredRun, target: str) -> str:
    """The class of a target's machine: CPU model and hypervisor; empty where the CPU is hidden."""
    known = run.manifest.fingerprints.get(target)
    cpu = facts.text(known, "cpu.by_cpuid.brand") or facts.text(known, "cpu.by_cpuinfo.model_name")
    return f"{cpu}, {facts.text(known, 'hypervisor.name') or 'none'}" if cpu else ""


def _trial_values(run: StoredRun) -> Iterator[tuple[LineId, Sequence[float]]]:
    """The trial values of every line of a run, without the intervals that cost time."""
    place = {record.key.name: record.position for record in run.records()}
    values, distributions = query.medians_and_histograms(run)
    for key, group in lines.group_scalars(values, place).items():
        yield key, group.values
    for key, distribution in lines.group_histograms(distributions, place).items():
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
