"""Builds the section of a machine's noise, whose title is the outcome."""

from __future__ import annotations

from nephoscope.core import units
from nephoscope.core.model import Estimate
from nephoscope.features.comparison.noise import Noise, NoisyResult, needed_text, ratio_text
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Section, Sentence, items
from nephoscope.report.columns import number, table, text
from nephoscope.results.counters import CounterLine
from nephoscope.stats.detectable import DetectableDifference
from nephoscope.stats.statistics.values import percent


def section(noise: Noise) -> Section:
    """Returns the differences by number of repetitions, and what disturbed the machine."""
    rows = [(line, row) for line in noise.results for row in line.comparisons]
    blocks: list[Block] = [
        table(
            rows,
            text("result", lambda pair: _name(*pair)),
            number("n", lambda pair: pair[1].n),
            number("smallest difference", lambda pair: _text(pair[1].difference)),
            number("A/A half width", lambda pair: _text(pair[1].half_width)),
        ),
        table(
            noise.results,
            text("result", lambda line: line.title),
            number(
                f"n for {percent(noise.difference)}",
                lambda line: needed_text(line.repetitions_needed),
            ),
            number("rounds measured", lambda line: line.rounds),
        ),
        Sentence(_how_to_read(noise)),
    ]
    if noise.counters:
        blocks.append(
            table(
                noise.counters,
                text("during the measurement", lambda line: line.name),
                number("median", lambda line: _counter(line, line.median)),
                number("maximum", lambda line: _counter(line, line.maximum)),
                number("trials", lambda line: f"{line.n} of {line.trials}"),
            )
        )
    blocks += items(noise.warnings, title="Notes")
    return Section("noise", noise.conclusion, tuple(blocks))


def _name(line: NoisyResult, row: DetectableDifference) -> str:
    return line.title if row is line.comparisons[0] else ""


def _text(estimate: Estimate | None) -> str:
    return "no interval" if estimate is None else ratio_text(estimate)


def _counter(line: CounterLine, value: float | None) -> str | None:
    return None if value is None else units.format_value(value, line.unit)


def _how_to_read(noise: Noise) -> str:
    level = percent(noise.confidence)
    return (
        f"n: interleaved repetitions a side. Smallest difference: the {level} interval of a "
        f"comparison excludes no change in {percent(noise.power)} of comparisons of that "
        "difference. A/A half width: half of that interval if A and B are alike. In brackets: "
        f"{level} intervals, from {wording.plural(noise.results[0].rounds, 'round')} in "
        f"{units.format_duration(noise.duration_s)}; noise that is slower was not seen. A verdict "
        f"of better or worse adds the margin of {percent(noise.margin)} (--margin)."
    )
