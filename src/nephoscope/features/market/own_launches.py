"""Boots and launches of stored runs in the form of imported launches, to compare with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nephoscope.catalog import HOST_BOOT
from nephoscope.core.errors import UsageError
from nephoscope.core.model import MetricResult
from nephoscope.features.platforms.records import MARKS
from nephoscope.features.platforms.stored_boots import boot_of
from nephoscope.results import analyse_run
from nephoscope.store import Store
from nephoscope.store.market.records import PublishedLaunch

_MOMENTS = {"answer": "api_end", "kernel": "machine_start", MARKS[-1]: "user_data_start"}
"""Mark of a boot -> the moment of an imported launch that stands for it."""
NOTE = (
    "Own boots end when the host first answers, imported ones when the start script begins: both "
    "count as ready. Each own boot is a unit."
)


def read(names: Iterable[str], store: Store) -> list[PublishedLaunch]:
    """Returns the boots of stored runs. UsageError for a run that has none."""
    launches: list[PublishedLaunch] = []
    for name in names:
        run = store.open(name)
        lines = [line for line in analyse_run.build(run).metrics if line.benchmark == HOST_BOOT]
        own = list(_launches(run.id, lines))
        if not own:
            raise UsageError(
                f"Run {run.id} has no boots.",
                "`nephoscope platforms` and `nephoscope cloud boot` measure them.",
            )
        launches += own
    return launches


def _launches(run_id: str, lines: Iterable[MetricResult]) -> Iterator[PublishedLaunch]:
    by_target: dict[str, dict[int, dict[str, float]]] = {}
    for line in lines:
        for number, value in line.by_round.items():
            by_target.setdefault(line.target, {}).setdefault(number, {})[line.metric] = value
    for target, boots in by_target.items():
        for number, values in boots.items():
            if f"boot_{MARKS[-1]}_ns" not in values:
                continue
            marks = boot_of(target, number, values).marks_ns
            at_s = {"api_start": 0.0} | {
                moment: marks[mark] / 1e9 for mark, moment in _MOMENTS.items() if mark in marks
            }
            yield PublishedLaunch(f"own {target}", f"boot {number}", run_id, at_s)
