"""What neighbours take: the map of victims and loads, dose and response, before and after."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.core.model import RunResult
from nephoscope.features.isolation import charts, tables
from nephoscope.features.isolation.records import UNHARMED_VERDICTS, BaselineDrift, Cell, Isolation
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Item, Section, Sentence, Tile, items
from nephoscope.report.sections.excluded_trials import settings_without_results


def build(result: RunResult) -> Section | None:
    """Factors with their control, dose and response, recovery, index, names of resources."""
    isolation = result.part(Isolation)
    if isolation is None:
        return None
    blocks: list[Block] = [Sentence(lead(isolation), lead=True)]
    blocks += items(_warnings(isolation))
    if isolation.cells:
        blocks += [charts.heat_map(isolation.cells), tables.factors(isolation.cells)]
        blocks += charts.violins(isolation.cells)
        blocks += tables.recovery(isolation.cells)
    blocks += settings_without_results(result)
    if isolation.responses:
        blocks += charts.responses(isolation.responses)
        blocks += tables.responses(isolation.responses)
    if isolation.indices:
        blocks += tables.indices(isolation.indices)
    if isolation.named:
        blocks += tables.named(isolation.named)
    blocks += items(isolation.notes, title="Unavailable statistics")
    return Section("isolation", "Isolation from neighbours", tuple(blocks))


def answer(result: RunResult) -> list[str]:
    """Returns how many victims lose more than the margin, and the largest slowdown."""
    isolation = result.part(Isolation)
    return [lead(isolation)] if isolation and isolation.cells else []


def headline(result: RunResult) -> list[Tile]:
    """Returns the slowdowns by loads at full intensity, largest first."""
    isolation = result.part(Isolation)
    cells = isolation.cells if isolation else ()
    full = [
        cell for cell in cells if cell.factor and cell.intensity == 1 and not tables.is_idle(cell)
    ]
    tiles = []
    for cell in sorted(full, key=_size, reverse=True):
        label, victim = f"Slowdown by {tables.load_name(cell)}", tables.victim_name(cell.victim)
        value, interval, n = wording.ratio_cells(cell.factor)
        word = cell.comparison.verdict.word
        tiles.append(Tile(label, victim, f"{value} ×", interval, n, word))
    return tiles


def lead(isolation: Isolation) -> str:
    """Returns how many loads slow their victim, and the largest slowdown, in one sentence."""
    cells = [cell for cell in isolation.cells if not tables.is_idle(cell)]
    if not cells:
        return "No round has both a baseline and a loaded trial of the same victim."
    hurt = [cell for cell in cells if cell.comparison.verdict.word == "worse"]
    head = (
        f"{wording.plural(len(cells), 'pair')} of victim and load, each compared with its "
        "baseline in the same round: "
    )
    if not hurt:
        unharmed = sum(cell.comparison.verdict.word in UNHARMED_VERDICTS for cell in cells)
        return (
            f"{head}none is shown to lose more than the margin "
            f"(shown not to: {unharmed}, undecided: {len(cells) - unharmed})."
        )
    worst = max(hurt, key=_size)
    assert worst.factor is not None
    slowdown = wording.estimate_text(wording.plain(worst.factor))
    return (
        f"{head}{len(hurt)} {('loses' if len(hurt) == 1 else 'lose')} more than the margin. "
        f"The largest slowdown is {tables.victim_name(worst.victim)} with "
        f"{tables.load_name(worst)}: {slowdown} times worse."
    )


def _size(cell: Cell) -> float:
    return cell.factor.value if cell.factor else 0.0


def _warnings(isolation: Isolation) -> Iterator[Item]:
    if isolation.idle is not None:
        bad = "too many" in isolation.idle.sentence
        share = isolation.idle.share
        details = (f"share: {wording.estimate_text(share)}",) if share else ()
        yield Item(isolation.idle.sentence, "warning" if bad else "info", details)
    moved = [drift for drift in isolation.drifts if drift.drift.word == "drifts"]
    if moved:
        yield Item(
            f"The baseline drifted during the run for {wording.plural(len(moved), 'victim')}. "
            "Linear drift over three trials cancels in the factors; other drift widens their "
            "intervals.",
            "notice",
            tuple(_drift(drift) for drift in moved[:8]),
        )


def _drift(drift: BaselineDrift) -> str:
    ratio = drift.drift.ratio
    text = wording.estimate_text(wording.plain(ratio)) if ratio else "unknown"
    return f"{tables.victim_name(drift.victim)}: end over beginning {text}, above 1 is worse"
