"""`nephoscope rank`: which alternative is best, in what, and how certain is that?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from nephoscope.cli.kit import options
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.named import Named
from nephoscope.cli.kit.options import SEEDS, argument, flag, option, ratio, repeated
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError


def _weights(texts: Sequence[str]) -> dict[str, float]:
    """Returns name to weight of each `--weight NAME=NUMBER`."""
    weights = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            weight = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
        except ValueError:
            weight = -1.0
        if not name.strip() or not 0 < weight < 1e9:
            raise UsageError(
                f"--weight takes NAME=NUMBER with a number above 0, not '{text}'.",
                "Use, for example, --weight Memory=2.",
            )
        weights[name.strip()] = weight
    return weights


@dataclass(frozen=True, slots=True)
class _RankArguments:
    sources: Sequence[str] = argument(
        Named(kind="source"), nargs=-1, required=True, metavar="RUN|FILE.csv..."
    )
    by: str = option("--by", "FACTOR", "Factor whose levels are ranked, or `target`.", default="")
    metrics: Sequence[str] = repeated(
        "--metric", "NAME", "Metric to rank by [default: headline metrics]."
    )
    reference: str = option(
        "--reference",
        "NAME",
        "Alternative to which ratios relate [default: the first].",
        default="",
    )
    weights: Mapping[str, float] = repeated(
        "--weight",
        "NAME=NUMBER",
        "Weight of a benchmark or of a group of benchmarks; all others count 0.",
        callback=lambda context, parameter, texts: _weights(texts),
    )
    margin: float = option(
        "--margin",
        ratio(0.0001, 0.99),
        "Relative difference that is not worth a change of platform.",
        default="3%",
    )
    confidence: float = option(
        "--confidence",
        ratio(0.5, 0.9999),
        "Confidence level of intervals and ranks.",
        default="95%",
    )
    top: int = option(
        "--top",
        click.IntRange(1, 1000),
        "Number of best ranks of the probability P(top K).",
        default=3,
        show_default=True,
    )
    every: bool = flag("--all", "Print all alternatives instead of the best 20.")
    ranks_only: bool = flag("--ranks-only", "Print a table of ranks by parameter only.")
    seed: int = option(
        "--seed", SEEDS, "Random seed of rank probabilities and bootstraps.", default=1
    )
    to: Path | None = options.REPORT_FILE
    engine: str | None = options.ENGINE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("ranking", ".features.rank.records:Ranking"),
    requests=Query(),
    examples=(
        "latest",
        "values.csv --top 10 --all",
    ),
)
def rank(args: _RankArguments) -> int:
    """Rank alternatives by metric, overall and by application.

    Alternatives are the targets of RUN, the levels of a factor (--by), several runs, or those of
    a CSV file; a run is RUN, RUN:TARGET or NAME=RUN:TARGET. Ranks have intervals that hold for all
    alternatives together. docs/how-to/rank.md describes the columns of FILE.csv.
    """
    from nephoscope.core.reading.sentences import listed
    from nephoscope.features.rank import figures_file, result, stored
    from nephoscope.features.rank.records import RankSettings
    from nephoscope.features.rank.section import ranks_section, section
    from nephoscope.store import Store
    from nephoscope.store.engines import using

    if files := [text for text in args.sources if text.endswith(".csv")]:
        if len(args.sources) > 1 or args.by or args.metrics or args.engine:
            raise UsageError(
                "A file of values is ranked alone.",
                "Omit runs, --by, --metric and --engine, or the file.",
            )
        alternatives = figures_file.read(Path(files[0]), args.confidence)
    else:
        run_store = Store(args.store)
        with using(args.engine, str(run_store.path)) as engine:
            alternatives = stored.of_runs(
                args.sources, run_store, args.by, frozenset(args.metrics), args.confidence, engine
            )
    settings = RankSettings(
        args.reference, args.weights, args.margin, args.confidence, args.seed, args.top
    )
    ranking = result.rank(alternatives, settings)
    page = ranks_section(ranking, args.every) if args.ranks_only else section(ranking, args.every)
    subtitle = listed(ranking.alternatives)
    return present(ranking, page, as_json=args.as_json, to=args.to, source=subtitle)
