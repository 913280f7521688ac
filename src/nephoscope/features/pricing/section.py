"""Tariffs and utilities as sections, which the commands print and write to pages."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.core import units
from nephoscope.features.cost.section import plain_interval
from nephoscope.features.pricing.tariff import RULES, TariffAnalysis
from nephoscope.features.pricing.utility import UtilityAnalysis
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import Block, Chart, Heading, Section, Sentence, items
from nephoscope.report.columns import number, spread, table, text
from nephoscope.report.wording import amount, amount_interval


def tariff_section(analysis: TariffAnalysis) -> Section:
    """Bills by class, the calibration, and the gains of cheats."""
    return Section("tariff", "Tariff by size and throughput", tuple(_tariff_blocks(analysis)))


def _tariff_blocks(analysis: TariffAnalysis) -> Iterator[Block]:
    factor, revenue = analysis.calibration, amount(analysis.revenue, analysis.currency)
    yield Sentence(
        f"With prices {factor.value:.4g} times as high (interval: {plain_interval(factor)}) the "
        f"tariff by throughput has the revenue of the flat tariff, {revenue} a month.",
        lead=True,
    )
    currency = analysis.currency
    yield table(
        analysis.bills,
        text("class", lambda bill: bill.name),
        number("clients", lambda bill: bill.clients),
        number("throughput", lambda bill: f"{bill.throughput_mbit_per_s.value:.4g} Mbit/s"),
        number("interval", lambda bill: plain_interval(bill.throughput_mbit_per_s)),
        number("flat", lambda bill: amount(bill.flat, currency)),
        number("by throughput", lambda bill: amount(bill.by_throughput.value, currency)),
        number("same revenue", lambda bill: amount(bill.calibrated.value, currency)),
        number("interval", lambda bill: amount_interval(bill.calibrated)),
        number("change", lambda bill: f"{100 * bill.change_ratio.value:+.1f} %"),
        caption="Bill of a client for a month:",
    )
    yield Heading("Gains of cheats")
    names = [bill.name for bill in analysis.bills]
    cheats = list(dict.fromkeys((cheat.cheat, cheat.by) for cheat in analysis.cheats))
    gains = {
        (cheat.cheat, cheat.client_class, cheat.rule): cheat.gain_ratio for cheat in analysis.cheats
    }
    yield table(
        [(f"{cheat} ({by})", cheat, name) for cheat, by in cheats for name in names],
        text("cheat", lambda row: row[0]),
        text("class", lambda row: row[2]),
        *spread(
            RULES, lambda row: [f"{100 * gains[row[1], row[2], rule]:.1f} %" for rule in RULES]
        ),
        caption="Gain relative to the honest bill, by the throughput that counts:",
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
            f"(interval: {plain_interval(best.utility)}), best with a probability of "
            f"{100 * best.rank_1_probability:.0f} %.",
            lead=True,
        )
    else:
        yield Sentence("No offer is within the budget and the limits.", lead=True)
    currency = analysis.currency
    yield table(
        analysis.offers,
        text("offer", lambda offer: offer.offer),
        number("price", lambda offer: amount(offer.price.value, currency)),
        number("utility", lambda offer: f"{offer.utility.value:.4f}"),
        number("interval", lambda offer: plain_interval(offer.utility)),
        number("product", lambda offer: f"{offer.product:.4f}", roomy=True),
        number("per 100", lambda offer: f"{offer.per_100.value:.4f}"),
        number("best with", lambda offer: f"{100 * offer.rank_1_probability:.1f} %"),
        number("TOPSIS", lambda offer: f"{offer.topsis:.4f}", roomy=True),
        text("Pareto", lambda offer: "yes" if offer.is_pareto else ""),
        text("excluded", lambda offer: offer.excluded),
    )
    weights = ", ".join(f"{name} {weight:.4g}" for name, weight in analysis.weights.items())
    weighted = f"Weights: {wording.clean(weights)}."
    if analysis.consistency_ratio is not None:
        weighted += f" Consistency ratio of the comparisons: {analysis.consistency_ratio:.3f}."
    yield Sentence(weighted)
    if analysis.best_level is not None:
        level = analysis.best_level
        values = ", ".join(f"{name} {value:.5g}" for name, value in level.levels.items())
        yield Sentence(
            f"Best level that the provider sells within the budget: {wording.clean(values)}, for "
            f"{amount(level.price, currency)}, utility {level.utility:.4g}."
        )
    yield from _curves(analysis)
    yield from items(analysis.notes)


def _curves(analysis: UtilityAnalysis) -> Iterator[Chart]:
    """A curve of each parameter, with the offers on it."""
    for position, curve in enumerate(analysis.curves):
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
        offers = table(
            points,
            text("offer", lambda point: point[0]),
            number("value", lambda point: units.format_number(point[1], 6)),
            number("utility", lambda point: f"{point[2]:.4f}"),
        )
        yield Chart(
            f"utility-{position}",
            f"Utility by {wording.clean(curve.parameter)}",
            figure,
            offers,
            brief=None,
        )
