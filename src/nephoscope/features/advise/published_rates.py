"""The rate of a work like an application on server types, from imported measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nephoscope.core.errors import UsageError
from nephoscope.features.advise.answers import Application
from nephoscope.features.market import own_run, prediction
from nephoscope.features.market.command import NOTHING
from nephoscope.features.market.prediction_records import TypePrediction
from nephoscope.features.market.works import DEFAULT, work_of
from nephoscope.store import Store
from nephoscope.store.market.catalogue import MarketCatalogue

_WORK_OF_KIND: Mapping[str | None, str] = {"web": "web", "transactions": "postgres"}
"""Kind of application -> the work that is most like it; of any other kind work on all CPUs."""


def predict(
    store: Store,
    application: Application,
    types: Sequence[str],
    run: str,
    work: str,
    confidence: float,
) -> TypePrediction:
    """Returns the prediction of a work, by default that of the application's kind, on types and on
    the machine of a run. UsageError where nothing was imported, and for unknown names."""
    catalogue = MarketCatalogue.of_store(store.path)
    if catalogue is None:
        raise UsageError(*NOTHING)
    name = work or _WORK_OF_KIND.get(application.kind, DEFAULT)
    return prediction.predict(
        catalogue,
        work_of(name, catalogue.metadata.metrics, "--work"),
        names=types,
        machine=own_run.read(store.open(run), catalogue) if run else None,
        confidence=confidence,
    )
