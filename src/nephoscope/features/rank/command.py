"""`nephoscope rank`: which alternative is best, in what, and how certain is that?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from nephoscope.cli.kit import options
from nephoscope.cli.kit.options import SEEDS, flag, option, ratio, repeated
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


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="RUN|FILE.csv...")
@option("--by", "FACTOR", "Factor whose levels are ranked, or `target`.", default="")
@repeated("--metric metrics", "NAME", "Metric to rank by [default: headline metrics].")
@option(
    "--reference", "NAME", "Alternative to which ratios relate [default: the first].", default=""
)
@repeated(
    "--weight weights",
    "NAME=NUMBER",
    "Weight of a benchmark or of a group of benchmarks; all others count 0.",
    callback=lambda context, parameter, texts: _weights(texts),
)
@option(
    "--margin",
    ratio(0.0001, 0.99),
    "Relative difference that is not worth a change of platform.",
    default="3%",
)
@option(
    "--confidence", ratio(0.5, 0.9999), "Confidence level of intervals and ranks.", default="95%"
)
@option(
    "--top",
    click.IntRange(1, 1000),
    "Number of best ranks of the probability P(top K).",
    default=3,
    show_default=True,
)
@flag("--all every", "Print all alternatives instead of the best 20.")
@flag("--ranks-only", "Print a table of ranks by parameter only.")
@option("--seed", SEEDS, "Random seed of rank probabilities and bootstraps.", default=1)
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
    top: int,
    every: bool,
    ranks_only: bool,
    seed: int,
    to: Path | None,
    store: Path | None,
    as_json: bool,
) -> int:
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

    if files := [text for text in sources if text.endswith(".csv")]:
        if len(sources) > 1 or by or metrics:
            raise UsageError(
                "A file of values is ranked alone.", "Omit runs, --by and --metric, or the file."
            )
        alternatives = figures_file.read(Path(files[0]), confidence)
    else:
        alternatives = stored.of_runs(sources, Store(store), by, frozenset(metrics), confidence)
    settings = RankSettings(reference, weights, margin, confidence, seed, top)
    ranking = result.rank(alternatives, settings)
    page = ranks_section(ranking, every) if ranks_only else section(ranking, every)
    subtitle = listed(ranking.alternatives)
    return present(ranking, page, as_json=as_json, to=to, source=subtitle)
