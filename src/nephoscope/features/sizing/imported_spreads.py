"""Spreads of server types from imported measurements of machines with the same CPU model."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.core.errors import UsageError
from nephoscope.features.market import spread_analysis
from nephoscope.features.market.works import work_of
from nephoscope.features.sizing.application import ApplicationSource
from nephoscope.features.sizing.knowledge import (
    InstanceSpread,
    Ledger,
    MissingQuantity,
    TypeKnowledge,
)
from nephoscope.features.sizing.transfer import NOTHING
from nephoscope.store import Store
from nephoscope.store.market.catalogue import MarketCatalogue


def add_imported_spreads(
    source: ApplicationSource, types: Sequence[TypeKnowledge], ledger: Ledger
) -> list[str]:
    """Adds spreads to types without one, where the file names a work for it; returns notes.

    The machines are of different types with one CPU model at one provider, so that the spread holds
    what types differ in besides what instances of a type do. Raises UsageError.
    """
    name = source.file.spread_work
    if name is None or source.file.spread is not None:
        return []
    catalogue = MarketCatalogue.of_store(Store(source.store).path)
    if catalogue is None:
        raise UsageError(f"{source.at('spread_work')}: {NOTHING[0]}.", NOTHING[1])
    work = work_of(name, catalogue.metadata.metrics, source.at("spread_work"))
    rates = catalogue.values([work.metric])[work.metric].tolist()
    servers = {f"{server.provider}/{server.name}": server for server in catalogue.types}
    added = False
    for known in types:
        server = servers.get(known.name)
        if known.spread is not None or server is None or not server.cpu_model:
            continue
        alike = [
            place
            for place, each in enumerate(catalogue.types)
            if (each.provider, each.cpu_model) == (server.provider, server.cpu_model)
        ]
        unit = catalogue.metadata.metrics[work.metric].unit
        machines = [catalogue.types[place] for place in alike]
        spread = spread_analysis.analyse(
            machines, [rates[place] for place in alike], work.title, unit
        )
        if not spread.models:
            reason = (
                f"how much instances of {known.name} differ is not known: fewer than "
                f"{spread_analysis.LEAST} imported machines of its provider have its CPU model"
            )
            known.gaps.append(MissingQuantity("spread", reason))
            continue
        (model,) = spread.models
        origin = f"import, {work.metric} of {model.machines} machines with {model.cpu_model}"
        entry = ledger.add(f"spread of {known.name}", model.variation, "imported", origin)
        known.spread, added = InstanceSpread(entry), True
    return [
        "Imported spreads are those of machines of different types with one CPU model, an upper "
        "bound of what instances of one type differ by."
    ] * added
