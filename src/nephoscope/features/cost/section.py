"""Prices, costs of work and savings as sections, which the commands print and write to pages."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.core import units
from nephoscope.core.model import Estimate
from nephoscope.features.cost.price_lists import Import
from nephoscope.features.cost.price_records import PURCHASES, Offer, PriceBook
from nephoscope.features.cost.saving import SavingAnalysis, SavingForm
from nephoscope.features.cost.work import WorkCost, WorkCosts
from nephoscope.features.simulation import choice_charts
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import Block, Chart, Column, Heading, Section, Sentence, Table, items
from nephoscope.report.wording import amount, amount_interval


def interval(estimate: Estimate) -> str:
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
    head = (
        *Column.texts("offer", "date"),
        *Column.numbers("on demand", "committed", "spot"),
        Column("billing"),
        Column("source", roomy=True),
    )
    blocks.append(Table(head, tuple(_offer_row(offer) for offer in book.offers), "Per hour:"))
    if book.egress:
        rows = tuple(
            (
                entry.name,
                str(entry.date),
                ", ".join(
                    f"from {tier.from_gb:g} {entry.unit}: {tier.price_per_gb:g}"
                    for tier in entry.tiers
                ),
                entry.currency,
                wording.clean(entry.source),
            )
            for entry in book.egress
        )
        names = Column.texts("egress", "date", "price of a gigabyte", "currency")
        blocks.append(Table((*names, Column("source", roomy=True)), rows, "Data that leave:"))
    return Section("prices", "Prices", tuple(blocks))


def _offer_row(offer: Offer) -> tuple[str, ...]:
    prices = (offer.price_or_none(purchase) for purchase in PURCHASES)
    return (
        wording.clean(offer.name),
        str(offer.date),
        *("–" if price is None else amount(price, offer.currency) for price in prices),
        f"{offer.billing_step_s:g} s steps, minimum {offer.billing_minimum_s:g} s",
        wording.clean(offer.source),
    )


def work_section(costs: WorkCosts) -> Section:
    """Costs of work by option, with the frontier of cost and capacity."""
    cheapest = costs.costs[0]
    cost = cheapest.cost_per_million
    text = (
        f"{wording.clean(cheapest.option)} is cheapest: "
        f"{amount(cost.value, costs.currency)} per million {wording.clean(costs.unit)} "
        f"({'no interval' if cost.low is None else f'interval: {amount_interval(cost)}'})."
    )
    similar = [wording.clean(cost.option) for cost in costs.costs if cost.similar_to_cheapest]
    if similar:
        text += f" The intervals do not distinguish {wording.joined(similar)} from it."
    head = (
        Column("option"),
        *Column.numbers("per hour", "capacity per s", "interval", "per million", "interval"),
        Column("frontier"),
    )
    rows = tuple(_work_row(cost, costs.currency) for cost in costs.costs)
    caption = f"Objective: {wording.clean(costs.objective)}." if costs.objective else ""
    blocks = (
        Sentence(text, lead=True),
        Table(head, rows, caption),
        _frontier(costs),
        *items(_work_notes(costs)),
    )
    return Section("cost", "Cost of work", blocks)


def _work_row(cost: WorkCost, currency: str) -> tuple[str, ...]:
    capacity = cost.capacity_per_s
    return (
        wording.clean(cost.option),
        amount(cost.price_per_h, currency),
        units.format_number(capacity.value, 4),
        interval(capacity),
        amount(cost.cost_per_million.value, currency),
        amount_interval(cost.cost_per_million),
        "yes" if cost.on_frontier else "",
    )


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
    table = Table(
        (Column("option"), *Column.numbers("capacity per s", "per million")),
        tuple(
            (cost.option, f"{cost.capacity_per_s.value:.6g}", f"{cost.cost_per_million.value:.6g}")
            for cost in costs.costs
        ),
    )
    return Chart(
        "cost-frontier",
        "Cost frontier",
        {"data": data, "layout": figures.layout(x_axis, y_axis)},
        table,
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
    pays = "never pays" if hours is None else f"pays from {hours.value:.4g} h on"
    selected = wording.joined(map(wording.clean, analysis.selected_models))
    bounds = "no interval" if best.saving.low is None else amount_interval(best.saving)
    yield Sentence(
        f"Selecting {selected} saves {amount(best.saving.value, job.currency)} ({bounds}), "
        f"{wording.percent(best.saving_ratio.value, 4)} of a job of "
        f"{wording.plural(job.instances, 'instance')} for {job.hours:g} h, and {pays}."
        if best.saving.value > 0
        else f"Selecting {selected} saves nothing of a job of "
        f"{wording.plural(job.instances, 'instance')} for {job.hours:g} h: accept every launch.",
        lead=True,
    )
    yield Table(
        (Column("model"), *Column.numbers("machines", "share", "speed", "interval")),
        tuple(
            (
                wording.clean(model.model),
                "–" if model.machines is None else str(model.machines),
                wording.percent(model.share, 3),
                units.format_number(model.speed.value, 4),
                interval(model.speed),
            )
            for model in analysis.mix
        ),
        f"Mix: {wording.clean(analysis.source)}. Launches of unknown speed: {analysis.rest}.",
    )
    yield Table(
        (Column(""), *Column.numbers("saving", "interval", "ratio", "break-even", "interval")),
        tuple(_form_row(form, job.currency) for form in analysis.forms),
    )
    yield from items(analysis.explanation)
    yield Heading("Other rules")
    yield Table(
        (Column("keep"), Column("cost of the job", True)),
        tuple(
            (
                wording.joined(map(wording.clean, kept_model.models)),
                amount(kept_model.cost, job.currency),
            )
            for kept_model in analysis.kept_models
        ),
        "Cost with a search until each instance is one of these, with equal parts of the work:",
    )
    yield Table(
        (Column("model"), Column("another launch pays above", True)),
        tuple(
            (
                wording.clean(rule.model),
                "never" if rule.rejected_above_h is None else f"{rule.rejected_above_h:.4g} h",
            )
            for rule in analysis.stopping
        ),
        "Optimal stopping, by the work that is left for an instance (hours of speed 1):",
    )
    if analysis.fleets:
        yield _fleets(analysis)
    yield choice_charts.surface(analysis.surface, "two models, endless job", 1)
    yield from items(analysis.notes)


def _form_row(form: SavingForm, currency: str) -> tuple[str, ...]:
    hours = form.break_even_h
    return (
        form.formula,
        amount(form.saving.value, currency),
        amount_interval(form.saving),
        wording.percent(form.saving_ratio.value, 4),
        "never" if hours is None else f"{hours.value:.4g} h",
        "none" if hours is None else interval(hours),
    )


def _fleets(analysis: SavingAnalysis) -> Table:
    head = (
        Column("strategy"),
        *Column.numbers("fleets", "cost", "saving", "5 % to 95 % of fleets", "fleets that lose"),
    )
    rows = tuple(
        (
            simulated.strategy.replace("_", " "),
            f"{simulated.fleets:,}",
            amount(simulated.cost, analysis.job.currency),
            wording.percent(simulated.saving_ratio, 4),
            f"{wording.percent(simulated.low_ratio, 3)} to "
            f"{wording.percent(simulated.high_ratio, 3)}",
            wording.percent(simulated.losing_ratio, 3) or "0 %",
        )
        for simulated in analysis.fleets
    )
    return Table(head, rows, "Simulated fleets:")
