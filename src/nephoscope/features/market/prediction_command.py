"""`nephoscope predict`: the rate of a work on server types that nobody measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nephoscope.cli.kit import options
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.options import Count, argument, option, repeated
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError
from nephoscope.features.market.command import NOTHING


@dataclass(frozen=True, slots=True)
class _PredictArguments:
    types: Sequence[str] = argument(metavar="[PROVIDER/TYPE]...", nargs=-1, required=False)
    work: str = option("--work", "NAME", "Work to predict, e.g. redis.", default="geekbench")
    figures: Path | None = option(
        "--figures", options.PATH, "CSV file METRIC,VALUE of a machine that was not imported."
    )
    run: str = option("--from", "RUN", "Stored run of a machine, e.g. of a survey.", default="")
    providers: Sequence[str] = repeated("--provider", "NAME", "Provider of the types to predict.")
    confidence: float = option(
        "--confidence",
        options.ratio(0.5, 0.99, is_open=True),
        "Confidence level of the intervals.",
        default="90%",
    )
    top: int = option(
        "--top", Count(1, 100_000), "Number of types to show.", default=20, show_default=True
    )
    to: Path | None = options.REPORT_FILE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("type_prediction", ".features.market.prediction_records:TypePrediction"),
    requests=Query(),
    examples=(
        "--work redis",
        "--work redis --provider alpha --top 5",
    ),
)
def predict(args: _PredictArguments) -> int:
    """Predict a work on server types that nobody measured.

    From small benchmarks of the imported types (`nephoscope import`): CPU, compression, hashing,
    memory bandwidth, PassMark. The intervals are for a type of a provider and a CPU model that is
    not among them; types that are unlike all others get none. Without PROVIDER/TYPE, --figures and
    --from, all types without a figure of the work are predicted.
    """
    from nephoscope.features.market import own_machine, own_run, prediction
    from nephoscope.features.market.prediction_section import prediction_section
    from nephoscope.features.market.works import work_of
    from nephoscope.store import Store
    from nephoscope.store.market.catalogue import MarketCatalogue

    if args.run and args.figures is not None:
        raise UsageError("--from and --figures exclude each other.", "Use only one of them.")
    store = Store(args.store)
    catalogue = MarketCatalogue.of_store(store.path)
    if catalogue is None:
        raise UsageError(*NOTHING)
    result = prediction.predict(
        catalogue,
        work_of(args.work, catalogue.metadata.metrics, "--work"),
        names=args.types,
        machine=own_run.read(store.open(args.run), catalogue)
        if args.run
        else None
        if args.figures is None
        else own_machine.read(args.figures),
        providers=args.providers,
        top=args.top,
        confidence=args.confidence,
    )
    page = prediction_section(result)
    return present(result, page, as_json=args.as_json, to=args.to, source=result.title)
