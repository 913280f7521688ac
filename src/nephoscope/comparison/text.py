"""Prints comparisons, and what repeated runs say together, as text."""

from __future__ import annotations

from nephoscope import units
from nephoscope.analysis.statistics.values import percent
from nephoscope.commands import output
from nephoscope.comparison.repeats import RepeatedRuns
from nephoscope.comparison.result import Compared, Comparisons, Rules
from nephoscope.naming import line_name


def print_comparisons(comparisons: Comparisons, rules: Rules, better: str) -> None:
    """Prints every comparison, the warnings, and the next step. better: of plain numbers, or ''."""
    first = comparisons.comparisons[0]
    output.say(f"A = {first.a}\nB = {first.b}")
    direction = f"; {better} is better" if better else ""
    output.say(f"({first.design}; margin {rules.margin * 100:g} %{direction})\n")
    for line in comparisons.comparisons:
        output.say(_block(line))
    for warning in comparisons.warnings:
        output.say(output.wrapped(f"! {warning}"))
    if comparisons.next_step:
        output.say(f"Next step: {comparisons.next_step}")


def _block(line: Compared) -> str:
    comparison = line.comparison
    head = [line.label] if line.label else []
    outcome = f"  {comparison.verdict.word.upper()}"
    if comparison.ratio is not None:
        (ratio,) = comparison.verdict.estimates or (comparison.ratio,)
        text = units.format_interval(ratio.value, ratio.low, ratio.high, "none", 4)
        outcome += f"   B / A = {text} at {ratio.confidence * 100:g} %"
    texts = [comparison.verdict.sentence, ", ".join(_effects(line))]
    texts += [f"! {warning}" for warning in comparison.warnings]
    body = [output.wrapped(text, "  ", "    ") for text in texts if text]
    return "\n".join([*head, outcome, *body]) + "\n"


def _effects(line: Compared) -> list[str]:
    comparison = line.comparison
    parts = [f"n {comparison.n_a} and {comparison.n_b}"]
    if comparison.cliffs_delta is not None and comparison.a12 is not None:
        parts.append(f"Cliff's delta {comparison.cliffs_delta:+.2f} (A12 {comparison.a12:.2f})")
    if comparison.difference is not None:
        shift = comparison.difference
        text = units.format_interval(shift.value, shift.low, shift.high, shift.unit)
        parts.append(f"shift {text}")
    if comparison.p is not None:
        parts.append(f"p {comparison.p:.2g}")
    if comparison.p_holm is not None:
        parts.append(f"after Holm {comparison.p_holm:.2g}")
    return parts


def print_repeats(repeats: RepeatedRuns) -> None:
    """Prints the headline metrics over all runs, with their variation from run to run."""
    several = len({line.target for line in repeats.metrics}) > 1
    rows = [
        (
            line_name(line.benchmark, line.metric, line.factors)
            + (f" on {line.target}" if several else ""),
            units.format_interval(
                line.estimate.value, line.estimate.low, line.estimate.high, line.estimate.unit
            ),
            percent(line.run_to_run, 2),
        )
        for line in repeats.metrics
        if line.headline
    ]
    output.say(f"{len(repeats.runs)} runs: {', '.join(repeats.runs)}\n")
    output.say(output.table(("METRIC", "MEAN OF RUNS", "RUN TO RUN"), rows, right=(2,)))
    for warning in repeats.warnings:
        output.say(output.wrapped(f"! {warning}"))
