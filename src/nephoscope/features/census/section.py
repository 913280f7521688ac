"""CPU models behind an instance type as a section: shares, speeds, and expected speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nephoscope.core import units
from nephoscope.core.model import Estimate, RunResult
from nephoscope.features.census.analysis import Chance, ModelShare, RelativeSpeed
from nephoscope.features.census.records import Bench, Census, InstanceType, ShareGroup
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import Block, Chart, Heading, Section, Sentence, Table, items
from nephoscope.report.columns import number, spread, table, text
from nephoscope.results.run_settings import warnings_of

_PATTERNS = ("", "/", "x", ".")
"""Of the bars once all colours are used: a model has to stay the same on paper."""


def build(result: RunResult) -> Section | None:
    """The census of a run that measured several machines."""
    census = result.part(Census)
    return section(census) if census is not None and census.machines else None


def section(census: Census) -> Section:
    """The whole census as one section, also for its own page."""
    blocks: list[Block] = [Sentence(_lead(census), lead=True)]
    blocks += items(census.flags, "notice")
    blocks += items(warnings_of(census.hidden_settings), "warning")
    blocks += _models(census)
    blocks += _places("zone", [(kind, kind.zones) for kind in census.kinds])
    blocks += _places("hour (UTC)", [(kind, kind.hours) for kind in census.kinds])
    blocks += _speeds(census)
    blocks += _expected(census)
    blocks += items(_notes(census), title="Notes")
    return Section("census", "CPU models", tuple(blocks))


def _lead(census: Census) -> str:
    models = {share.model for kind in census.kinds for share in kind.models}
    kinds = [kind for kind in census.kinds if kind.machines]
    what = wording.plural(census.machines, "machine")
    of_types = wording.plural(len(kinds), "type")
    text = f"{what} of {of_types}, {wording.plural(len(models), 'CPU model')}"
    of = [wording.plural(census.runs, "run")] if census.runs else []
    of += [wording.clean(source) for source in census.sources]
    return f"{text}, from {wording.joined(of)}." if of else f"{text}."


def _share_cells(model_share: ModelShare) -> tuple[str, str, str]:
    return (
        str(model_share.count),
        wording.percent(model_share.share.value, 3),
        _interval(model_share.share),
    )


def _interval(estimate: Estimate) -> str:
    return wording.interval_text(estimate) if estimate.low is not None else "none"


def _models(census: Census) -> list[Block]:
    clocks = any(kind.clocks for kind in census.kinds)
    rows: list[tuple[InstanceType, str, ModelShare | None]] = []
    for kind in census.kinds:
        rows += [(kind, model.model, model) for model in kind.models]
        rows += [(kind, model, None) for model in kind.uncounted]
    if not rows:
        return []

    def ghz(row: tuple[InstanceType, str, ModelShare | None]) -> str:
        clock = row[0].clocks.get(row[1])
        return units.format_number(clock / 1e9, 3) if clock else ""

    level = f"{100 * census.confidence:g} %"
    listing = table(
        rows,
        text("type", lambda row: row[0].name),
        text("CPU model", lambda row: row[1]),
        *([number("GHz", ghz)] if clocks else []),
        number("machines", lambda row: row[2].count if row[2] else "not counted"),
        number("share", lambda row: wording.percent(row[2].share.value, 3) if row[2] else ""),
        number("interval", lambda row: _interval(row[2].share) if row[2] else ""),
        grouped=1,
    )
    counted = [kind for kind in census.kinds if kind.machines]
    if not counted:
        return [listing]
    caption = (
        "Each bar shows all machines of one instance type. Whiskers show the Wilson interval "
        f"({level}) of each segment's share, measured from the start of the segment."
    )
    bars = [(f"{wording.clean(kind.name)} (n = {kind.machines})", kind.models) for kind in counted]
    figure = _stacked(bars)
    chart = Chart("census-shares", "Shares of CPU models", figure, listing, caption, repeats=True)
    of_all = f"Shares of all machines of the type, with Wilson intervals at {level}."
    return [Heading("CPU models"), Sentence(of_all), listing, chart]


def _stacked(bars: Sequence[tuple[str, Sequence[ModelShare]]]) -> dict[str, object]:
    """Stacked bars of shares, the interval of each segment as its whisker."""
    by_bar = [{share.model: share for share in shares} for _, shares in bars]
    models = dict.fromkeys(model for of in by_bar for model in of)
    parts = [(wording.clean(model), [of.get(model) for of in by_bar]) for model in models]
    heights = [(name, [s.share.value if s else 0.0 for s in own]) for name, own in parts]
    axis = figures.Axis("share of machines", "ratio")
    figure = figures.stacked([name for name, _ in bars], heights, axis)
    for index, (trace, (name, own)) in enumerate(zip(figure["data"], parts, strict=True)):
        colours = len(palette.COLOURS)
        trace["marker"]["pattern"] = {
            "shape": _PATTERNS[(index // colours) % len(_PATTERNS)],
            "fillmode": "overlay",
            "fgcolor": "#ffffff",
        }
        shares = [model_share.share if model_share else None for model_share in own]
        # Black, because the whiskers lie on bars of every colour.
        trace["error_x"] = figures.error_bars(
            [estimate.value if estimate else 0.0 for estimate in shares],
            [estimate.low if estimate else None for estimate in shares],
            [estimate.high if estimate else None for estimate in shares],
        ) | {"width": 4, "color": "#000000"}
        trace["customdata"] = [
            figures.text(f"{bar}, {name}: {' '.join(_share_cells(s)[1:])}, {s.count} machines")
            if s
            else ""
            for (bar, _), s in zip(bars, own, strict=True)
        ]
    return figure


def _places(what: str, groups: Sequence[tuple[InstanceType, Sequence[ShareGroup]]]) -> list[Block]:
    """Shares by zone or by hour, where more than one of them was seen."""
    seen = [(kind, own) for kind, own in groups if len(own) > 1]
    places = [(kind, group) for kind, own in seen for group in own]
    if not places:
        return []
    bars = [
        (f"{wording.clean(f'{kind.name}, {group.name}')} (n = {group.machines})", group.models)
        for kind, group in places
    ]
    listing = table(
        [(kind, group, model) for kind, group in places for model in group.models],
        text("type", lambda row: row[0].name),
        text(what, lambda row: row[1].name),
        text("CPU model", lambda row: row[2].model),
        number("machines", lambda row: row[2].count),
        number("share", lambda row: wording.percent(row[2].share.value, 3)),
        number("interval", lambda row: _interval(row[2].share)),
        grouped=2,
    )
    word = what.partition(" ")[0]
    chart = Chart(
        f"census-{word}s",
        f"Shares by {word}",
        _stacked(bars),
        listing,
        f"Shares for each {word} separately; few machines give wide intervals.",
        repeats=True,
    )
    return [Heading(f"By {what}"), listing, chart]


def _speeds(census: Census) -> list[Block]:
    blocks: list[Block] = []
    for kind in census.kinds:
        if not kind.benches:
            continue
        stated = [bench for bench in kind.benches if bench.source != "measured"]
        measured = [bench for bench in kind.benches if bench.source == "measured"]
        title = f"Speed on {wording.clean(kind.name)}, relative to the slowest model"
        blocks.append(Heading(title))
        if stated:
            blocks.append(_matrix(stated))
        if measured:
            blocks.append(_long(measured))
        blocks.append(_speed_chart(kind, [*stated, *measured]))
    if blocks:
        blocks.append(
            Sentence(
                "Each benchmark is listing separately. There is no combined score, because the "
                "weights depend on your workload."
            )
        )
    return blocks


def _matrix(benches: Sequence[Bench]) -> Table:
    """Ratios that a source gives, as it prints them: benchmarks down, models across."""
    models = sorted({speed.model for bench in benches for speed in bench.speeds})
    sources = wording.joined(dict.fromkeys(wording.clean(bench.source) for bench in benches))

    def ratios(bench: Bench) -> list[str | None]:
        own = {speed.model: _ratio(speed.ratio) for speed in bench.speeds}
        return list(map(own.get, models))

    columns = spread(map(wording.clean, models), ratios)
    return table(benches, text("benchmark", lambda row: row.label), *columns, caption=f"{sources}:")


def _ratio(estimate: Estimate) -> str:
    value = units.format_number(estimate.value, 3)
    return value if estimate.low is None else f"{value} {wording.interval_text(estimate)}"


def _long(benches: Sequence[Bench]) -> Table:
    def ends(speed: RelativeSpeed) -> str:
        slowest = speed.ratio.low is None and speed.ratio.value == 1
        return "the slowest" if slowest else _interval(speed.ratio)

    def n(speed: RelativeSpeed) -> str:
        counts = {"machines": speed.machines, "runs": speed.runs, "trials": speed.trials}
        return f"{counts[speed.unit]} {speed.unit}" if speed.unit else str(speed.machines)

    return table(
        [(bench, speed) for bench in benches for speed in bench.speeds],
        text("benchmark", lambda row: row[0].label),
        text("CPU model", lambda row: row[1].model),
        number("speed", lambda row: _plain(row[1].ratio)),
        number("interval", lambda row: ends(row[1])),
        number("n", lambda row: n(row[1])),
        text("note", lambda row: row[1].note, roomy=True),
        grouped=1,
    )


def _speed_chart(kind: InstanceType, benches: Sequence[Bench]) -> Chart:
    rows = [
        (f"{wording.clean(bench.label)}: {wording.clean(speed.model)}", speed.ratio)
        for bench in benches
        for speed in bench.speeds
    ][:60]
    figure = figures.dots(rows, figures.Axis("speed relative to the slowest model", "none"))
    figures.vertical(figure["layout"], 1.0, "the slowest", log=False)
    listing = table(
        rows,
        text("what", lambda row: row[0]),
        number("speed", lambda row: _plain(row[1])),
        number("interval", lambda row: _interval(row[1])),
        number("n", lambda row: row[1].n or None),
    )
    return Chart(
        f"census-speed-{wording.slug(kind.name)}",
        f"Speed of CPU models on {wording.clean(kind.name)}",
        figure,
        listing,
        "Ratios with their intervals; dots without whiskers have no interval.",
        repeats=True,
    )


def _plain(estimate: Estimate) -> str:
    return units.format_number(estimate.value, 4)


def _expected(census: Census) -> list[Block]:
    means: list[tuple[str, str, Estimate]] = []
    chances: list[tuple[str, str, Chance]] = []
    refused, left_out = [], []
    benches = [(wording.clean(kind.name), bench) for kind in census.kinds for bench in kind.benches]
    for name, bench in benches:
        label = wording.clean(bench.label)
        if bench.expected is None:
            refused.append(f"{name}, {label}: no expected speed: {bench.refused}")
            continue
        mean = bench.expected.mean
        means.append((name, label, mean))
        left_out += [
            f"{name}: {wording.clean(model)} was counted but not measured and is excluded."
            for model in bench.expected.left_out
        ]
        chances += [
            (name, label, speed)
            for speed in bench.expected.chances
            # That all are at least as fast as the slowest is no news.
            if round(speed.share.value * mean.n) != mean.n or speed.at_least > 1
        ]
    if not means:
        return []
        return []
    blocks: list[Block] = [
        Heading("Expected speed of a new instance"),
        Sentence(
            "Mean speed over the mix of models, relative to the slowest. The interval includes "
            "the uncertainty of the shares and of the speeds. n counts machines."
        ),
        table(
            means,
            text("type", lambda row: row[0]),
            text("benchmark", lambda row: row[1]),
            number("expected speed", lambda row: _plain(row[2])),
            number("interval", lambda row: _interval(row[2])),
            number("n", lambda row: row[2].n),
        ),
    ]
    if chances:
        listing = table(
            chances,
            text("type", lambda row: row[0]),
            text("benchmark", lambda row: row[1]),
            number("speed", lambda row: f"≥ {units.format_number(row[2].at_least, 3)}"),
            number("probability", lambda row: wording.percent(row[2].share.value, 3)),
            number("interval", lambda row: _interval(row[2].share)),
            text("by", lambda row: wording.joined(row[2].models) or "none", roomy=True),
            caption="Probability of at least this speed:",
        )
        blocks.append(listing)
    return [*blocks, *items(dict.fromkeys((*left_out, *refused)))]


def _notes(census: Census) -> Iterator[str]:
    if census.identity:
        yield census.identity
    for kind in census.kinds:
        for note in kind.notes:
            yield f"{kind.name}: {note}"
    yield from (*census.notes, *census.left_out)
