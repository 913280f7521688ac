"""Tariffs and utilities as sections, which the commands print and write to pages."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.core import units
from nephoscope.features.cost.section import interval
from nephoscope.features.pricing.tariff import RULES, TariffAnalysis
from nephoscope.features.pricing.utility import OfferUtility, UtilityAnalysis
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import Block, Chart, Column, Heading, Section, Sentence, Table, items
from nephoscope.report.wording import amount, amount_interval


def tariff_section(analysis: TariffAnalysis) -> Section:
    """Bills by class, the calibration, and the gains of cheats."""
    return Section("tariff", "Tariff by size and throughput", tuple(_tariff_blocks(analysis)))


def _tariff_blocks(analysis: TariffAnalysis) -> Iterator[Block]:
    factor, revenue = analysis.calibration, amount(analysis.revenue, analysis.currency)
    yield Sentence(
        f"With prices {factor.value:.4g} times as high (interval: {interval(factor)}) the tariff "
        f"by throughput has the revenue of the flat tariff, {revenue} a month.",
        lead=True,
    )
    head = (
        *Column.texts("class"),
        *Column.numbers("clients", "throughput", "interval", "flat", "by throughput"),
        *Column.numbers("same revenue", "interval", "change"),
    )
    rows = tuple(
        (
            wording.clean(bill.name),
            str(bill.clients),
            f"{bill.throughput_mbit_per_s.value:.4g} Mbit/s",
            interval(bill.throughput_mbit_per_s),
            amount(bill.flat, analysis.currency),
            amount(bill.by_throughput.value, analysis.currency),
            amount(bill.calibrated.value, analysis.currency),
            amount_interval(bill.calibrated),
            f"{100 * bill.change_ratio.value:+.1f} %",
        )
        for bill in analysis.bills
    )
    yield Table(head, rows, "Bill of a client for a month:")
    yield Heading("Gains of cheats")
    names = [bill.name for bill in analysis.bills]
    cheats = list(dict.fromkeys((cheat.cheat, cheat.by) for cheat in analysis.cheats))
    gains = {
        (cheat.cheat, cheat.client_class, cheat.rule): cheat.gain_ratio for cheat in analysis.cheats
    }
    yield Table(
        (*Column.texts("cheat", "class"), *Column.numbers(*RULES)),
        tuple(
            (
                f"{cheat} ({by})",
                wording.clean(name),
                *(f"{100 * gains[cheat, name, rule]:.1f} %" for rule in RULES),
            )
            for cheat, by in cheats
            for name in names
        ),
        "Gain relative to the honest bill, by the throughput that counts:",
    )
    ten, more = (amount(value, analysis.currency) for value in analysis.ten_terabytes)
    notes = (*analysis.notes, f"10 TB cost {ten} as 10,000 and {more} as 10,240 gigabytes, flat.")
    yield from items(notes)


def utility_section(analysis: UtilityAnalysis) -> Section:
    """The offers by utility, the provider's best level and the curves."""
    return Section("utility", "Utility of offers", tuple(_utility_blocks(analysis)))


def _utility_blocks(analysis: UtilityAnalysis) -> Iterator[Block]:
    best = analysis.offers[0]
    if analysis.recommended:
        yield Sentence(
            f"Recommended: {wording.clean(best.offer)}, utility {best.utility.value:.4f} "
            f"(interval: {interval(best.utility)}), best with a probability of "
            f"{100 * best.rank_1_probability:.0f} %.",
            lead=True,
        )
    else:
        yield Sentence("No offer is within the budget and the limits.", lead=True)
    head = (
        Column("offer"),
        *Column.numbers("price", "utility", "interval"),
        Column("product", True, roomy=True),
        *Column.numbers("per 100", "best with"),
        Column("TOPSIS", True, roomy=True),
        *Column.texts("Pareto", "excluded"),
    )
    currency = analysis.currency
    yield Table(head, tuple(_utility_row(offer, currency) for offer in analysis.offers))
    weights = ", ".join(f"{name} {weight:.4g}" for name, weight in analysis.weights.items())
    text = f"Weights: {wording.clean(weights)}."
    if analysis.consistency_ratio is not None:
        text += f" Consistency ratio of the comparisons: {analysis.consistency_ratio:.3f}."
    yield Sentence(text)
    if analysis.best_level is not None:
        level = analysis.best_level
        values = ", ".join(f"{name} {value:.5g}" for name, value in level.levels.items())
        yield Sentence(
            f"Best level that the provider sells within the budget: {wording.clean(values)}, for "
            f"{amount(level.price, currency)}, utility {level.utility:.4g}."
        )
    yield from _curves(analysis)
    yield from items(analysis.notes)


def _utility_row(offer: OfferUtility, currency: str) -> tuple[str, ...]:
    return (
        wording.clean(offer.offer),
        amount(offer.price.value, currency),
        f"{offer.utility.value:.4f}",
        interval(offer.utility),
        f"{offer.product:.4f}",
        f"{offer.per_100.value:.4f}",
        f"{100 * offer.rank_1_probability:.1f} %",
        f"{offer.topsis:.4f}",
        "yes" if offer.is_pareto else "",
        wording.clean(offer.excluded),
    )


def _curves(analysis: UtilityAnalysis) -> Iterator[Chart]:
    """A curve of each parameter, with the offers on it."""
    for number, curve in enumerate(analysis.curves):
        points = [
            (offer.offer, offer.values[curve.parameter], offer.utilities[curve.parameter])
            for offer in analysis.offers
        ]
        figure = figures.lines(
            [figures.Curve("utility", curve.values, curve.utilities)],
            figures.Axis(curve.parameter, "none"),
            figures.Axis("utility", "none", from_zero=True),
            markers=False,
        )
        colour, _, symbol = palette.style(1)
        figure["data"].append(
            figures.trace(
                "offers",
                [value for _, value, _ in points],
                [utility for _, _, utility in points],
                [f"{name}: {value:.6g}, utility {utility:.4f}" for name, value, utility in points],
                marker={"color": colour, "symbol": symbol, "size": 10},
            )
        )
        rows = tuple(
            (wording.clean(name), units.format_number(value, 6), f"{utility:.4f}")
            for name, value, utility in points
        )
        yield Chart(
            f"utility-{number}",
            f"Utility by {wording.clean(curve.parameter)}",
            figure,
            Table((Column("offer"), *Column.numbers("value", "utility")), rows),
            brief=None,
        )
