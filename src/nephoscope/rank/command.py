"""`nephoscope rank`: which alternative is best, in what, and how certain is that?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope.commands import options
from nephoscope.commands.options import ratio
from nephoscope.commands.section_output import present
from nephoscope.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.rank.records import Ranking, Settings


def _weights(
    context: click.Context, option: click.Parameter, texts: Sequence[str]
) -> dict[str, float]:
    """Name to weight of each `--weight NAME=NUMBER`."""
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


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="RUN|FILE.csv...")
@click.option("--by", metavar="FACTOR", default="", help="Factor whose levels are ranked.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Metric to rank by [default: headline metrics]; may be repeated.",
)
@click.option(
    "--reference",
    metavar="NAME",
    default="",
    help="Alternative to which ratios relate [default: the first].",
)
@click.option(
    "--weight",
    "weights",
    multiple=True,
    metavar="NAME=NUMBER",
    callback=_weights,
    help="Weight of a benchmark or a group of them; may be repeated; the rest count 0.",
)
@click.option(
    "--margin",
    default="3%",
    metavar="RATIO",
    show_default=True,
    callback=ratio(0.0001, 0.99),
    help="Relative difference that is not worth a change of platform.",
)
@click.option(
    "--confidence",
    default="95%",
    metavar="RATIO",
    show_default=True,
    callback=ratio(0.5, 0.9999),
    help="Confidence level of intervals and ranks.",
)
@click.option("--ranks-only", is_flag=True, help="Print a table of ranks by parameter only.")
@click.option(
    "--seed",
    type=options.SEEDS,
    default=1,
    show_default=True,
    metavar="N",
    help="Random seed of rank probabilities and bootstraps.",
)
@options.REPORT_FILE
@options.STORE
@options.JSON
def rank(
    sources: Sequence[str],
    by: str,
    metrics: Sequence[str],
    reference: str,
    weights: Mapping[str, float],
    margin: float,
    confidence: float,
    ranks_only: bool,
    seed: int,
    to: Path | None,
    store: Path | None,
    as_json: bool,
) -> int:
    """Rank alternatives by metric, overall and by application.

    Alternatives are the targets of RUN, the levels of a factor (--by), several runs, or those of
    a CSV file; a run is RUN, RUN:TARGET or NAME=RUN:TARGET. Alternatives that cannot be told apart
    share a rank. docs/how-to/rank.md describes the columns of FILE.csv.
    """
    from nephoscope.rank.records import Settings
    from nephoscope.rank.section import ranks_section, section

    settings = Settings(reference, weights, margin, confidence, seed)
    ranking = _ranking(sources, by, metrics, store, settings)
    page = ranks_section(ranking) if ranks_only else section(ranking)
    subtitle = ", ".join(ranking.alternatives)
    return present(ranking, page, as_json=as_json, to=to, source=subtitle)


def _ranking(
    sources: Sequence[str],
    by: str,
    metrics: Sequence[str],
    store: Path | None,
    settings: Settings,
) -> Ranking:
    """Ranks runs, or the values of a file."""
    from nephoscope.rank import figures_file, result, stored
    from nephoscope.rank.pairs import of_one_run
    from nephoscope.store import Store

    confidence = settings.confidence
    files = [text for text in sources if text.endswith(".csv")]
    if not files:
        runs = stored.of_runs(sources, Store(store), by, frozenset(metrics), confidence)
        return result.rank(
            runs.measurements, runs.names, runs.comparing, runs.reason, settings, runs.warnings
        )
    if len(sources) > 1 or by or metrics:
        raise UsageError(
            "A file of values is ranked alone.", "Omit runs, --by and --metric, or the file."
        )
    figures = figures_file.read(Path(files[0]), confidence)
    return result.rank(
        figures.measurements,
        figures.alternatives,
        lambda a, b, prior: of_one_run(a.line, b.line, confidence, prior),
        lambda name, line: figures.gaps.get(
            (name, line.benchmark, line.metric), "no value in the file"
        ),
        settings,
    )
