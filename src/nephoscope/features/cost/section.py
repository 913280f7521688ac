"""Prices, costs of work and savings as sections, which the commands print and write to pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nephoscope.core import units
from nephoscope.core.model import Estimate
from nephoscope.features.cost.price_lists import Import
from nephoscope.features.cost.price_records import PURCHASES, Offer, PriceBook, Purchase
from nephoscope.features.cost.saving import SavingAnalysis
from nephoscope.features.cost.work import WorkCosts
from nephoscope.features.simulation import choice_charts
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import Block, Chart, Heading, Section, Sentence, Table, items
from nephoscope.report.columns import count, number, table, text
from nephoscope.report.wording import amount, amount_interval
from nephoscope.results.run_settings import warnings_of


def plain_interval(estimate: Estimate) -> str:
    """The interval of a plain number; 'none' without one."""
    if estimate.low is None and estimate.high is None:
        return "none"
    return wording.interval_text(wording.plain(estimate))


def prices_section(book: PriceBook, imported: Import | None = None) -> Section:
    """The price book as tables."""
    blocks: list[Block] = []
    if imported is not None:
        used = wording.plural(imported.used, "row")
        give = "gives" if imported.used == 1 else "give"
        blocks.append(Sentence(f"{used} of {imported.what} {give} prices."))
        blocks += items(
            f"Not used: {wording.plural(n, 'row')} {why}." for why, n in imported.left_out.items()
        )
        blocks += items(imported.notes)

    def price(purchase: Purchase) -> Callable[[Offer], str | None]:
        def of(offer: Offer) -> str | None:
            value = offer.price_or_none(purchase)
            return None if value is None else amount(value, offer.currency)

        return of

    offers = table(
        book.offers,
        text("offer", lambda offer: offer.name),
        text("date", lambda offer: offer.date),
        *(number(purchase.replace("_", " "), price(purchase)) for purchase in PURCHASES),
        text(
            "billing",
            lambda row: f"{row.billing_step_s:g} s steps, minimum {row.billing_minimum_s:g} s",
        ),
        text("source", lambda offer: offer.source, roomy=True),
        caption="Per hour:",
    )
    blocks.append(offers)
    if book.egress:
        egress = table(
            book.egress,
            text("egress", lambda entry: entry.name),
            text("date", lambda entry: entry.date),
            text(
                "price of a gigabyte",
                lambda entry: ", ".join(
                    f"from {tier.from_gb:g} {entry.unit}: {tier.price_per_gb:g}"
                    for tier in entry.tiers
                ),
            ),
            text("currency", lambda entry: entry.currency),
            text("source", lambda entry: entry.source, roomy=True),
            caption="Data that leave:",
        )
        blocks.append(egress)
    return Section("prices", "Prices", tuple(blocks))


def work_section(costs: WorkCosts) -> Section:
    """Costs of work by option, with the frontier of cost and capacity."""
    cheapest = costs.costs[0]
    cost = cheapest.cost_per_million
    conclusion = (
        f"{wording.clean(cheapest.option)} is cheapest: "
        f"{amount(cost.value, costs.currency)} per million {wording.clean(costs.unit)} "
        f"({'no interval' if cost.low is None else f'interval: {amount_interval(cost)}'})."
    )
    similar = [wording.clean(cost.option) for cost in costs.costs if cost.similar_to_cheapest]
    if similar:
        conclusion += f" The intervals do not distinguish {wording.joined(similar)} from it."
    options = table(
        costs.costs,
        text("option", lambda row: row.option),
        number("per hour", lambda row: amount(row.price_per_h, costs.currency)),
        number("capacity per s", lambda row: units.format_number(row.capacity_per_s.value, 4)),
        number("interval", lambda row: plain_interval(row.capacity_per_s)),
        number("per million", lambda row: amount(row.cost_per_million.value, costs.currency)),
        number("interval", lambda row: amount_interval(row.cost_per_million)),
        text("frontier", lambda row: "yes" if row.on_frontier else ""),
        caption=f"Objective: {wording.clean(costs.objective)}." if costs.objective else "",
    )
    blocks = (
        Sentence(conclusion, lead=True),
        options,
        _frontier(costs),
        *items(warnings_of(costs.hidden_settings), "warning"),
        *items(_work_notes(costs)),
    )
    return Section("cost", "Cost of work", blocks)


def _work_notes(costs: WorkCosts) -> Iterator[str]:
    for cost in costs.costs:
        if cost.speed_factor is not None:
            factor = wording.estimate_text(cost.speed_factor)
            yield f"{cost.option}: the mix costs {factor} times as much as instances of speed 1."
        if cost.egress_per_million:
            egress = amount(cost.egress_per_million, costs.currency)
            yield f"{cost.option}: {egress} are for egress."
        yield f"{cost.option}: price {cost.source}."
    yield from costs.notes


def _frontier(costs: WorkCosts) -> Chart:
    """Capacity against cost, with both intervals."""
    data = []
    groups = (("on the frontier", True), ("another option has more for less", False))
    for index, (name, wanted) in enumerate(groups):
        own = [cost for cost in costs.costs if cost.on_frontier is wanted]
        if not own:
            continue
        colour, _, symbol = palette.style(index)
        x = [cost.capacity_per_s for cost in own]
        y = [cost.cost_per_million for cost in own]
        hover = [
            f"{cost.option}: {amount(cost.cost_per_million.value, costs.currency)} per million"
            for cost in own
        ]
        data.append(
            figures.trace(
                name,
                [estimate.value for estimate in x],
                [estimate.value for estimate in y],
                hover,
                marker={"color": colour, "symbol": symbol, "size": 10},
                error_x=figures.interval_bars(x),
                error_y=figures.interval_bars(y),
            )
        )
    capacities = [cost.capacity_per_s for cost in costs.costs]
    prices = [cost.cost_per_million for cost in costs.costs]
    x_axis, y_axis = (
        figures.axis_of(figures.Axis(title, "none"), figures.ends_of(estimates))
        for title, estimates in (
            ("capacity of an instance per second", capacities),
            (f"cost per million, {costs.currency}", prices),
        )
    )
    options = table(
        costs.costs,
        text("option", lambda row: row.option),
        number("capacity per s", lambda row: f"{row.capacity_per_s.value:.6g}"),
        number("per million", lambda row: f"{row.cost_per_million.value:.6g}"),
    )
    return Chart(
        "cost-frontier",
        "Cost frontier",
        {"data": data, "layout": figures.layout(x_axis, y_axis)},
        options,
        "An option is on the frontier if no other one has at least its capacity for less.",
        repeats=True,
    )


def saving_section(analysis: SavingAnalysis) -> Section:
    """The saving by each formula, the rules, the simulated fleets and the surface."""
    blocks = tuple(_saving_blocks(analysis))
    return Section("saving", "Savings from instance selection", blocks)


def _saving_blocks(analysis: SavingAnalysis) -> Iterator[Block]:
    job, best = analysis.job, analysis.forms[-1]
    hours = best.break_even_h
    pays = "it never pays" if hours is None else f"break-even after {hours.value:.4g} h"
    selected = wording.joined(map(wording.clean, analysis.selected_models))
    bounds = "no interval" if best.saving.low is None else amount_interval(best.saving)
    yield Sentence(
        f"Selecting {selected} saves {amount(best.saving.value, job.currency)} "
        f"({wording.percent(best.saving_ratio.value, 3)}; {bounds}) on a job of "
        f"{wording.plural(job.instances, 'instance')} for {job.hours:g} h; {pays}."
        if best.saving.value > 0
        else f"Selecting {selected} saves nothing of a job of "
        f"{wording.plural(job.instances, 'instance')} for {job.hours:g} h: accept every launch.",
        lead=True,
    )
    yield table(
        analysis.mix,
        text("model", lambda row: row.model),
        number("machines", lambda row: row.machines),
        number("share", lambda row: wording.percent(row.share, 3)),
        number("speed", lambda row: units.format_number(row.speed.value, 4)),
        number("interval", lambda row: plain_interval(row.speed)),
        caption=f"Mix: {wording.clean(analysis.source)}. Launches of unknown speed: "
        f"{analysis.rest}.",
    )
    yield table(
        analysis.forms,
        text("", lambda form: form.formula),
        number("saving", lambda form: amount(form.saving.value, job.currency)),
        number("interval", lambda form: amount_interval(form.saving)),
        number("ratio", lambda form: wording.percent(form.saving_ratio.value, 4)),
        number(
            "break-even",
            lambda form: form.break_even_h and f"{form.break_even_h.value:.4g} h",
            missing="never",
        ),
        number(
            "interval",
            lambda form: form.break_even_h and plain_interval(form.break_even_h),
            missing="none",
        ),
    )
    yield from items(analysis.explanation)
    yield Heading("Other rules")
    yield table(
        analysis.kept_models,
        text("keep", lambda row: wording.joined(map(wording.clean, row.models))),
        number("cost of the job", lambda row: amount(row.cost, job.currency)),
        caption="Cost with a search until each instance is one of these, with equal parts of the "
        "work:",
    )
    yield table(
        analysis.stopping,
        text("model", lambda row: row.model),
        number(
            "another launch pays above",
            lambda row: (
                "never" if row.rejected_above_h is None else f"{row.rejected_above_h:.4g} h"
            ),
        ),
        caption="Optimal stopping, by the work that is left for an instance (hours of speed 1):",
    )
    if analysis.fleets:
        yield _fleets(analysis)
    yield choice_charts.surface(analysis.surface, "two models, endless job", 1)
    yield from items(analysis.notes)


def _fleets(analysis: SavingAnalysis) -> Table:
    return table(
        analysis.fleets,
        text("strategy", lambda row: row.strategy.replace("_", " ")),
        count("fleets", lambda row: row.fleets),
        number("cost", lambda row: amount(row.cost, analysis.job.currency)),
        number("saving", lambda row: wording.percent(row.saving_ratio, 4)),
        number(
            "5 % to 95 % of fleets",
            lambda row: (
                f"{wording.percent(row.low_ratio, 3)} to {wording.percent(row.high_ratio, 3)}"
            ),
        ),
        number("fleets that lose", lambda row: wording.percent(row.losing_ratio, 3) or "0 %"),
        caption="Simulated fleets:",
    )
