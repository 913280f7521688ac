"""Figures of a comparison as text, with interval and n."""

from __future__ import annotations

from nephoscope.model import Estimate
from nephoscope.studies.comparing import Outcome
from nephoscope.studies.filling import told
from nephoscope.studies.theirs import Figure


def told_theirs(outcome: Outcome) -> str:
    """Their figure: '1.022 times [1.018, 1.027], n 100 (Table 3.2)'."""
    figure = outcome.figure
    if figure.says:
        return f"{figure.says}, without a number ({figure.source})"
    if figure.value is None:
        return f"{' > '.join(figure.order)} ({figure.source})"
    value = told(figure.value, figure.low, figure.high, outcome.unit)
    return f"{value}, {_told_n(figure)} ({figure.source})"


def told_ours(outcome: Outcome) -> str:
    """Our figure with interval and n, or that there is none."""
    if outcome.steps:
        order = outcome.figure.order
        return "; ".join(
            f"{one} over {other} {told_estimate(step, 'times')}"
            for one, other, step in zip(order, order[1:], outcome.steps, strict=False)
        )
    return told_estimate(outcome.estimate, outcome.unit) if outcome.estimate else "none"


def _told_n(figure: Figure) -> str:
    return "n not given" if figure.n is None else f"n {figure.n}"


def told_estimate(estimate: Estimate, unit: str) -> str:
    """Value with interval and n: '75.1 % of a CPU [74.9, 75.3], n 9'."""
    return f"{told(estimate.value, estimate.low, estimate.high, unit)}, n {estimate.n}"
