"""What `isolate` prints: of each victim a table of neighbours, then what follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from nephoscope.cli.kit import output
from nephoscope.core import units
from nephoscope.core.grouping import group_by
from nephoscope.features.isolation import money
from nephoscope.features.isolation.records import Isolation
from nephoscope.features.isolation.section import lead
from nephoscope.report import wording
from nephoscope.results.execution import ExecutionSummary

if TYPE_CHECKING:
    from nephoscope.core.model import Estimate, RunResult
    from nephoscope.features.isolation.records import Cell, DoseResponse, VictimLine

MOST_ODD = 8
"""Lines on anomalies; all of them are in --json."""

_HEAD = ("  NEIGHBOUR", "LOAD", "K", "N", "FACTOR", "INTERVAL", "RECOVERY", "ATTRIBUTION")


def text(result: RunResult) -> str:
    """The answer, the matrix, dose and response, isolation, what was named, and anomalies."""
    isolation = result.part(Isolation)
    if isolation is None:
        return "No slowdown can be computed: no loaded trial is valid."
    intro = _wrapped(
        "Factor: slowdown relative to the baseline trials directly before and after; above 1 is "
        f"worse. Confidence {100 * result.run.confidence:g} %; n counts rounds; "
        f"{wording.plural(result.run.trials.valid, 'valid trial')}."
    )
    by_victim = group_by(isolation.cells, lambda cell: _name(cell.victim, result))
    tables = [f"{name}\n{_table(own)}" for name, own in by_victim.items()]
    execution = result.part(ExecutionSummary)
    warnings = execution.warnings if execution is not None else ()
    odd = [*warnings, *wording.exclusions_by_reason(result), *_odd(isolation)]
    more = [f"… and {len(odd) - MOST_ODD} more (--json)."] if len(odd) > MOST_ODD else []
    lists = {
        _about_money(isolation): [_lost(cell) for cell in isolation.cells if cell.lost],
        "Dose-response": [_dose(response) for response in isolation.responses],
        "Isolation index (1: no slowdown, 0: slowdown of fair sharing)": _indices(isolation),
        "Named": [named.sentence for named in isolation.named],
        "Control": [isolation.idle.sentence] if isolation.idle else [],
        "Without results": wording.excluded_rows(result),
        "Anomalies": [*odd[:MOST_ODD], *more],
    }
    blocks = [
        "\n".join([_wrapped(f"{head}:"), *(_wrapped(line, "  ") for line in lines)])
        for head, lines in lists.items()
        if lines
    ]
    return "\n\n".join([_wrapped(lead(isolation)), intro, *tables, *blocks])


def _about_money(isolation: Isolation) -> str:
    has_price = any(cell.lost and cell.lost.unit != "ratio" for cell in isolation.cells)
    return money.WITH_PRICE if has_price else money.WITHOUT_PRICE


def _name(victim: VictimLine, result: RunResult) -> str:
    where = f" on {victim.target}" if len(result.run.targets) > 1 else ""
    return f"{wording.line_name(victim.benchmark, victim.metric, victim.factors)}{where}"


def _table(cells: Iterable[Cell]) -> str:
    rows = [
        (
            f"  {cell.resource}",
            f"{100 * cell.intensity:g} %" if cell.neighbours else "-",
            str(cell.neighbours or "-"),
            str(cell.comparison.n_a),
            *_factor(cell.factor),
            cell.recovery.word,
            cell.attribution.word.value if cell.attribution else "-",
        )
        for cell in cells
    ]
    return output.table(_HEAD, rows, right=(1, 2, 3, 4))


def _lost(cell: Cell) -> str:
    load = f"{cell.resource} at {100 * cell.intensity:g} %" if cell.neighbours else cell.resource
    several = f" x {cell.neighbours}" if cell.neighbours > 1 else ""
    n = cell.lost.n if cell.lost else 0
    return f"{cell.victim.benchmark} with {load}{several}: {money.lost_text(cell)} (n = {n})"


def _factor(factor: Estimate | None) -> tuple[str, str]:
    if factor is None:
        return "-", "-"
    digits = units.interval_digits(factor.value, factor.low, factor.high)
    text = units.format_interval(factor.value, factor.low, factor.high, "none", digits)
    value, _, interval = text.partition(" ")
    return value, interval


def _dose(response: DoseResponse) -> str:
    several = f" x {response.neighbours}" if response.neighbours > 1 else ""
    load = f"load on {response.resource}{several}"
    return f"{response.victim.benchmark} with {load}: {response.response.sentence}"


def _indices(isolation: Isolation) -> list[str]:
    return [
        f"{index.resource}: {' '.join(_factor(index.index))} (by {index.victim.benchmark})"
        for index in isolation.indices
        if index.chosen
    ]


def _odd(isolation: Isolation) -> list[str]:
    drifting = [
        f"{drift.victim.benchmark}: the baseline drifts during the run."
        for drift in isolation.drifts
        if drift.drift.word == "drifts"
    ]
    return [*drifting, *isolation.notes]


def _wrapped(line: str, indent: str = "") -> str:
    return output.wrapped(line, indent, indent + "  " * bool(indent))
