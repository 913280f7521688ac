"""Capacities of server types: stated, of a document of `nephoscope capacity`, or of stored runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nephoscope.core.errors import UsageError
from nephoscope.core.reading.named_files import hiding_content_elsewhere
from nephoscope.features.cost.capacity_documents import capacity_document, capacity_in
from nephoscope.features.cost.quantities import Quantity
from nephoscope.features.load import stored_search
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
        return _capacity_of_document(name, kind, file, str(kind.capacity_file), ledger)


def _capacity_of_document(
    name: str, kind: SizeType, file: Path, title: str, ledger: Ledger
) -> MeasuredCapacity | MissingQuantity:
    document = capacity_document(file)
    if isinstance(document, dict) and document.get("capacity_per_s", "") is None:
        return _unbounded(name, f"{title} does not bound it")
    estimate, objective = capacity_in(document, file), _objective_in(document, file)
    runs = document.get("runs")
    ids = [run for run in runs if isinstance(run, str)] if isinstance(runs, list) else []
    of_runs = f", runs {ids[0][:40]} to {ids[-1][:40]}" if ids else ""
    origin = f"{title}{of_runs}, for {objective}"
    entry = ledger.add(f"capacity of {name}", estimate, "measured", origin)
    return MeasuredCapacity(entry, objective, kind.machines)


def _objective_in(document: Any, file: Path) -> LatencyObjective:
    text = document.get("objective") if isinstance(document, dict) else None
    if not isinstance(text, str):
        raise UsageError(f"{file}: it states no objective.", "Measure the capacity again.")
    return LatencyObjective.of(text)


def _capacity_of_runs(
    name: str, kind: SizeType, source: ApplicationSource, ledger: Ledger
) -> MeasuredCapacity | MissingQuantity:
    """Returns the capacity under the application's objective, whatever was searched for.

    A run stands for its whole search, whose stored result holds for the objective that it had.
    """
    store = Store(source.store)
    named = [store.open(run) for run in kind.capacity_runs]
    objective = LatencyObjective.of(source.file.objective)
    searched = {run.id: run for first in named for run in stored_search.runs_of(store, first)}
    runs = list(searched.values())
    path = stored_search.path_of(named[0])
    is_one_search = len(stored_search.runs_of(store, named[0])) == len(runs)
    if path is not None and is_one_search:
        document = capacity_document(path)
        if _objective_in(document, path) == objective:
            title = f"search of {named[0].id}"
            return _capacity_of_document(name, kind, path, title, ledger)
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
