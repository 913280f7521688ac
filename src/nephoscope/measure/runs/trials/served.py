"""Holds what the clients of a trial counted to what its servers counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nephoscope.core.model import Sample
from nephoscope.measure.runs.trials.loads import Load
from nephoscope.measure.targets import TargetTrial

SENT, COMPLETED = "sent_count", "completed_count"


def unequal_counts(
    servers: Sequence[str], clients: Mapping[str, TargetTrial], loads: Sequence[Load]
) -> str:
    """Returns a sentence with the counts where they cannot all be true; '' where they agree.

    servers: names of the backgrounds that answer the clients. Requests that were in flight when a
    client ended may have been served; nothing else may differ.
    """
    running = [load for load in loads if load.background.name in servers]
    if not running or not all(trial.done for trial in clients.values()):
        return ""
    samples = [sample for trial in clients.values() for sample in trial.samples]
    sent, completed = _sum(samples, SENT), _sum(samples, COMPLETED)
    served = sum(
        _sum(load.samples, load.spec.response_counter)
        for load in running
        if load.spec.response_counter
    )
    if completed <= served <= sent:
        return ""
    return (
        f"the clients sent {sent:,} requests and have {completed:,} valid responses, and the "
        f"servers ({', '.join(sorted({load.background.name for load in running}))}) count "
        f"{served:,} responses"
    )


def _sum(samples: Iterable[Sample], metric: str) -> int:
    return int(sum(sample.value for sample in samples if sample.metric == metric))
