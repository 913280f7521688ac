"""What a census of a cloud found, from its stored runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from statistics import fmean

from nephoscope.catalog import HOST_BOOT
from nephoscope.features.census import hosts, observations
from nephoscope.features.census.result import build
from nephoscope.features.cloud.census import WAVE, Campaign, CensusSpec, problems_of
from nephoscope.features.cloud.census_records import CloudCensus
from nephoscope.features.platforms.records import LAUNCH_MARKS, Boot
from nephoscope.features.platforms.stored_boots import boot_of, launch_figures, launched_kinds
from nephoscope.store import StoredRun, query


def result_of(campaign: Campaign, spec: CensusSpec, *, confidence: float) -> CloudCensus:
    """Returns the document of a census, of all its runs, also those of earlier calls."""
    runs = campaign.runs
    seen = observations.seen(runs)
    _, observed, _ = observations.observed(runs, frozenset(), False, Counter())
    launches = launch_figures(_launches(runs), confidence=confidence)
    return CloudCensus(
        campaign.name,
        campaign.planned,
        len(campaign.measured),
        spec.waves,
        len({entry.labels.get(WAVE) for entry in runs}),
        tuple(entry.id for entry in runs),
        campaign.cost,
        spec.currency,
        tuple(launches),
        hosts.host_hints(observed),
        tuple(problems_of(campaign)),
        campaign.stopped,
        build(seen, confidence=confidence),
    )


def mean_launch_s(runs: Iterable[StoredRun], type_name: str) -> float | None:
    """Returns the mean seconds to the first login of a type's stored launches; None without."""
    seconds = [
        boot.marks_ns[LAUNCH_MARKS[-1]] / 1e9
        for kind, boot in _launches(runs)
        if kind.startswith(f"{type_name} in ")
    ]
    return fmean(seconds) if seconds else None


def _launches(runs: Iterable[StoredRun]) -> Iterator[tuple[str, Boot]]:
    """Yields each launch that a run recorded, with its type and zone."""
    for run in runs:
        if not run.manifest.rented:
            continue
        kinds = launched_kinds(run.manifest.rented)
        values: dict[str, dict[str, float]] = {}
        for row in query.trial_medians(run, lambda benchmark, _: benchmark == HOST_BOOT):
            values.setdefault(row.target, {})[row.metric] = row.value
        for target, of_target in values.items():
            if target in kinds:
                yield kinds[target], boot_of(target, 0, of_target)
