"""`nephoscope spread`: how much the rates of machines with one CPU model differ."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nephoscope.cli.kit import options
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.options import option
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError
from nephoscope.features.market.command import NOTHING


@dataclass(frozen=True, slots=True)
class _SpreadArguments:
    metric: str = option("--metric", "NAME", "Work or metric to compare.", default="cpu-single")
    cpu_model: str = option("--cpu-model", "TEXT", "Part of the name of the CPU model.", default="")
    confidence: float = options.CONFIDENCE
    to: Path | None = options.REPORT_FILE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("cpu_spread", ".features.market.spread_records:CpuSpread"),
    requests=Query(),
    examples=(
        "",
        "--metric geekbench-single",
    ),
)
def spread(args: _SpreadArguments) -> int:
    """Show how much machines with one CPU model differ.

    The machines are those of published measurements that were imported (`nephoscope import`), one
    of each server type. `nephoscope census` counts the CPU models of your own launches.
    """
    from nephoscope.features.market import spread_analysis
    from nephoscope.features.market.spread_section import spread_section
    from nephoscope.features.market.works import work_of
    from nephoscope.store import Store
    from nephoscope.store.market.catalogue import MarketCatalogue

    catalogue = MarketCatalogue.of_store(Store(args.store).path)
    if catalogue is None:
        raise UsageError(*NOTHING)
    work = work_of(args.metric, catalogue.metadata.metrics, "--metric")
    rates = catalogue.values([work.metric])[work.metric].tolist()
    unit = catalogue.metadata.metrics[work.metric].unit
    record = spread_analysis.analyse(
        catalogue.types, rates, work.title, unit, args.confidence, args.cpu_model
    )
    if not record.models and args.cpu_model:
        raise UsageError(
            f"--cpu-model: no model with '{args.cpu_model[:60]}' has 6 machines or more.",
            "Omit it to see all models.",
        )
    return present(record, spread_section(record), as_json=args.as_json, to=args.to)
