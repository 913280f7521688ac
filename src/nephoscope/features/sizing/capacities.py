"""Capacities of server types: stated, of a document of `nephoscope capacity`, or of stored runs."""

from __future__ import annotations

from nephoscope.core.errors import UsageError
from nephoscope.core.reading.named_files import hiding_content_elsewhere
from nephoscope.features.cost.capacity_documents import capacity_document, capacity_in
from nephoscope.features.cost.quantities import Quantity
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.features.load.outcomes import capacity_of_runs
from nephoscope.features.sizing.application import ApplicationSource, SizeType
from nephoscope.features.sizing.knowledge import Ledger, MeasuredCapacity, MissingQuantity
from nephoscope.stats.statistics.values import Refused
from nephoscope.store import Store

LEAST_VALUES = 3
"""Instances from which on their spread is estimated: of two it has an interval of 1 to 70."""


def known_capacity(
    name: str, kind: SizeType, source: ApplicationSource, ledger: Ledger
) -> MeasuredCapacity | MissingQuantity | None:
    """Returns the capacity that the file names, or why its source bounds none; None without one.

    Raises UsageError for what cannot be read.
    """
    if kind.capacity_per_s is not None:
        return _stated_capacity(name, kind, kind.capacity_per_s, source, ledger)
    if kind.capacity_file is not None:
        return _capacity_of_file(name, kind, source, ledger)
    if kind.capacity_runs:
        return _capacity_of_runs(name, kind, source, ledger)
    return None


def _stated_capacity(
    name: str, kind: SizeType, quantity: Quantity, source: ApplicationSource, ledger: Ledger
) -> MeasuredCapacity:
    objective = LatencyObjective.of(kind.capacity_objective or source.file.objective)
    where = source.at("types", name, "capacity_per_s")
    repeated = len(quantity.values)
    entry = ledger.add(
        f"capacity of {name}",
        quantity.estimate("per_s"),
        "measured" if repeated else "stated",
        f"{where}, for {objective}",
    )
    is_repeated = repeated >= LEAST_VALUES and kind.spread is None and kind.census is None
    return MeasuredCapacity(entry, objective, repeated or kind.machines, is_repeated)


def _capacity_of_file(
    name: str, kind: SizeType, source: ApplicationSource, ledger: Ledger
) -> MeasuredCapacity | MissingQuantity:
    file = source.folder / str(kind.capacity_file)
    with hiding_content_elsewhere(file, source.folder, "result of `nephoscope capacity`"):
        document = capacity_document(file)
        if isinstance(document, dict) and document.get("capacity_per_s", "") is None:
            return _unbounded(name, f"{kind.capacity_file} does not bound it")
        estimate = capacity_in(document, file)
        text, runs = document.get("objective"), document.get("runs")
        if not isinstance(text, str):
            raise UsageError(f"{file}: it states no objective.", "Measure the capacity again.")
        objective = LatencyObjective.of(text)
    ids = [run for run in runs if isinstance(run, str)] if isinstance(runs, list) else []
    of_runs = f", runs {ids[0][:40]} to {ids[-1][:40]}" if ids else ""
    origin = f"{kind.capacity_file}{of_runs}, for {objective}"
    entry = ledger.add(f"capacity of {name}", estimate, "measured", origin)
    return MeasuredCapacity(entry, objective, kind.machines)


def _capacity_of_runs(
    name: str, kind: SizeType, source: ApplicationSource, ledger: Ledger
) -> MeasuredCapacity | MissingQuantity:
    """Returns the capacity under the application's objective, whatever was searched for."""
    store = Store(source.store)
    runs = [store.open(run) for run in kind.capacity_runs]
    objective = LatencyObjective.of(source.file.objective)
    try:
        estimate = capacity_of_runs(runs, objective)
    except Refused as why:
        return _unbounded(name, str(why))
    except UsageError as error:
        where = source.at("types", name, "capacity_runs")
        raise UsageError(f"{where}: {error.message}", error.hint) from None
    origin = f"runs {', '.join(run.id for run in runs)}, for {objective}"
    entry = ledger.add(f"capacity of {name}", estimate, "measured", origin)
    return MeasuredCapacity(entry, objective, kind.machines)


def _unbounded(name: str, why: str) -> MissingQuantity:
    return MissingQuantity("capacity", f"the capacity of {name} is not known: {why}")
