"""Days of rates of imported server types as series."""

from __future__ import annotations

from pathlib import Path

from nephoscope.core.errors import UsageError
from nephoscope.core.reading.sentences import did_you_mean, listed
from nephoscope.features.credits.files import FileSeries
from nephoscope.store.market.catalogue import MarketCatalogue

RATE, BUSY = "stress-ng.long-run/ops_per_s", "stress-ng.long-run/busy"
EVERY = "all"


def read(store: Path, name: str) -> list[FileSeries]:
    """Returns the series of a type PROVIDER/TYPE, or of all. UsageError where there is none."""
    catalogue = MarketCatalogue.of_store(store)
    if catalogue is None:
        raise UsageError(
            "No server types were imported.",
            "Clone SpareCores/sc-inspector-data and run `nephoscope import sc-inspector-data`.",
        )
    rows = catalogue.series([RATE, BUSY])
    busy = {(index, at): value for index, at, value in rows[BUSY]}
    series: dict[int, dict[int, tuple[float, float]]] = {}
    for index, at, rate in sorted(rows[RATE]):
        if (index, at) in busy:
            series.setdefault(index, {})[at] = (rate, busy[index, at])
    names = {index: "/".join(catalogue.types[index].key) for index in series}
    wanted = [index for index in series if name in (EVERY, names[index])]
    if not series:
        raise UsageError(
            f"--type: none of the {len(catalogue.types):,} imported types has a day of rates.",
            "Measure one with `nephoscope cloud credits`, or name a FILE of rates.",
        )
    if not wanted:
        raise UsageError(
            f"--type: no imported type '{name[:80]}' has a day of rates"
            f"{did_you_mean(name, names.values())}.",
            f"There is one of {listed(sorted(names.values()))}.",
        )
    return [
        FileSeries(
            names[index],
            [float(at) for at in series[index]],
            [rate for rate, _ in series[index].values()],
            [seconds for _, seconds in series[index].values()],
        )
        for index in wanted
    ]
