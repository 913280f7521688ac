"""The spread behind CPU models as a section."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.core import units
from nephoscope.features.market.spread_records import (
    CpuSpread,
    ModelSpread,
    ProviderSpread,
    SpeedGroup,
)
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Column, Section, Sentence, items
from nephoscope.report.columns import count, number, ratio, table, text

_DETAILED = 3
"""Models of which providers and groups are listed."""


def spread_section(spread: CpuSpread) -> Section:
    """Returns the section."""
    return Section("cpu-spread", "Spread behind CPU models", tuple(_blocks(spread)))


def _blocks(spread: CpuSpread) -> Iterator[Block]:
    yield Sentence(_answer(spread), lead=True)
    yield Sentence(
        f"{spread.lacks} The machines of a model are of different types: the spread has what types "
        "differ in (their number of CPUs, where the rate is that of the whole machine) besides "
        "what launches of one type would give."
    )
    if spread.models:
        ranges: tuple[Column[ModelSpread], ...] = ratio("p95 / p5", lambda row: row.range_ratio)
        yield table(
            spread.models,
            text("CPU model", lambda row: row.cpu_model),
            count("n", lambda row: row.machines),
            *ranges[:2],
            number("speeds", lambda row: len(row.groups)),
            number("launches to know", _launches, missing=""),
            caption=f"{spread.title}:",
        )
    if shared := [model for model in spread.models if model.between is not None]:
        between: tuple[Column[ModelSpread], ...] = ratio(
            "fastest / slowest", lambda row: row.between
        )
        yield table(
            shared,
            text("CPU model", lambda row: row.cpu_model),
            number("providers", lambda row: len(row.providers)),
            *between[:2],
            caption="Between providers with 6 machines or more, geometric means:",
        )
    for model in spread.models[:_DETAILED]:
        yield from _detail(model, spread)
    yield from items(_notes(spread))


def _launches(model: ModelSpread) -> str | None:
    known = model.launches_to_know
    if known is None:
        return None
    low, high = ("?" if end is None else f"{end:.0f}" for end in (known.low, known.high))
    return f"{known.value:.0f} [{low}, {high}]"


def _answer(spread: CpuSpread) -> str:
    if not spread.models:
        return "No CPU model has 6 machines or more."
    wide = spread.models[0]
    several = sum(len(model.groups) > 1 for model in spread.models)
    text_ = wording.estimate_text(wording.plain(wide.range_ratio))
    if len(spread.models) == 1:
        speeds = wording.plural(len(wide.groups), "speed")
        return (
            f"{wide.cpu_model} has {speeds}: the 95th percentile of its rates is {text_} times the "
            "5th."
        )
    return (
        f"{wide.cpu_model} has the widest range of {len(spread.models)} CPU models by its lower "
        f"bound: the 95th percentile is {text_} times the 5th. {several or 'None'} of the models "
        f"{'has' if several == 1 else 'have'} more than one speed."
    )


def _detail(model: ModelSpread, spread: CpuSpread) -> Iterator[Block]:
    variations: tuple[Column[ProviderSpread], ...] = ratio("variation", lambda row: row.variation)
    yield table(
        model.providers,
        text("provider", lambda row: row.provider),
        number("machines", lambda row: row.machines),
        number("typical", lambda row: wording.value_text(row.typical)),
        number(
            "interval",
            lambda row: "none" if row.typical.low is None else wording.interval_text(row.typical),
        ),
        *variations[:2],
        caption=f"{model.cpu_model} by provider:",
    )
    if len(model.groups) > 1:
        shares: tuple[Column[SpeedGroup], ...] = ratio("share", lambda row: row.share)
        yield table(
            model.groups,
            text(
                "rates",
                lambda row: (
                    f"{units.format_value(row.low, spread.unit)} to "
                    f"{units.format_value(row.high, spread.unit)}"
                ),
            ),
            number("machines", lambda row: row.machines),
            *shares[:2],
            caption=f"Speeds of {model.cpu_model}, separated by gaps (one speed: p = "
            f"{model.p_one_group:.3f}):",
        )


def _notes(spread: CpuSpread) -> Iterator[str]:
    if spread.models_left_out:
        yield (
            f"{wording.plural(spread.models_left_out, 'model')} with fewer than 6 machines are "
            f"left out ({wording.plural(spread.machines_left_out, 'machine')})."
        )
    yield (
        "Launches to know: after so many, a machine of the rarest speed was there with 95 % "
        "probability, if launches had the shares of these machines."
    )
    tested = sum(model.p_one_group is not None for model in spread.models)
    if tested:
        yield (
            f"{wording.plural(tested, 'model')} with the 12 machines or more that a test for "
            "several speeds needs; of those with a single speed, it finds several in at most 5 %."
        )
    yield from spread.notes
