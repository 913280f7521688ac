"""CPU models behind an instance type as a section: shares, speeds, and expected speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nephoscope.core import units
from nephoscope.core.model import Estimate, RunResult
from nephoscope.features.census.analysis import ModelShare
from nephoscope.features.census.records import Bench, Census, InstanceType, ShareGroup
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import Block, Chart, Column, Heading, Section, Sentence, Table, items

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
    rows: list[tuple[str, ...]] = []
    for kind in census.kinds:
        own = [(model.model, *_share_cells(model)) for model in kind.models]
        own += [(model, "not counted", "", "") for model in kind.uncounted]
        for index, (model, *cells) in enumerate(own):
            clock = kind.clocks.get(model)
            ghz = units.format_number(clock / 1e9, 3) if clock else ""
            name = wording.clean(kind.name) if index == 0 else ""
            rows.append((name, wording.clean(model), *([ghz] if clocks else []), *cells))
    if not rows:
        return []
    head = (
        *Column.texts("type", "CPU model"),
        *([Column("GHz", True)] if clocks else []),
        *Column.numbers("machines", "share", "interval"),
    )
    level = f"{100 * census.confidence:g} %"
    table = Table(head, tuple(rows))
    counted = [kind for kind in census.kinds if kind.machines]
    if not counted:
        return [table]
    caption = (
        "Each bar shows all machines of one instance type. Whiskers show the Wilson interval "
        f"({level}) of each segment's share, measured from the start of the segment."
    )
    bars = [(f"{wording.clean(kind.name)} (n = {kind.machines})", kind.models) for kind in counted]
    figure = _stacked(bars)
    chart = Chart("census-shares", "Shares of CPU models", figure, table, caption, repeats=True)
    text = f"Shares of all machines of the type, with Wilson intervals at {level}."
    return [Heading("CPU models"), Sentence(text), table, chart]


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
    rows: list[tuple[str, ...]] = []
    bars: list[tuple[str, Sequence[ModelShare]]] = []
    for kind, own in groups:
        if len(own) < 2:
            continue
        for group in own:
            of, place = wording.clean(kind.name), wording.clean(group.name)
            bars.append((f"{of}, {place} (n = {group.machines})", group.models))
            for index, model in enumerate(group.models):
                first = ("", "") if index else (of, place)
                rows.append((*first, wording.clean(model.model), *_share_cells(model)))
    if not rows:
        return []
    head = Column.head(("type", what, "CPU model"), ("machines", "share", "interval"))
    table = Table(head, tuple(rows))
    word = what.partition(" ")[0]
    chart = Chart(
        f"census-{word}s",
        f"Shares by {word}",
        _stacked(bars),
        table,
        f"Shares for each {word} separately; few machines give wide intervals.",
        repeats=True,
    )
    return [Heading(f"By {what}"), table, chart]


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
                "Each benchmark is shown separately. There is no combined score, because the "
                "weights depend on your workload."
            )
        )
    return blocks


def _matrix(benches: Sequence[Bench]) -> Table:
    """Ratios that a source gives, as it prints them: benchmarks down, models across."""
    models = sorted({speed.model for bench in benches for speed in bench.speeds})
    rows = []
    for bench in benches:
        own = {speed.model: speed.ratio for speed in bench.speeds}
        cells = [_ratio(own[model]) if model in own else "–" for model in models]
        rows.append((wording.clean(bench.label), *cells))
    sources = wording.joined(dict.fromkeys(wording.clean(bench.source) for bench in benches))
    head = (Column("benchmark"), *(Column(wording.clean(model), True) for model in models))
    return Table(head, tuple(rows), f"{sources}:")


def _ratio(estimate: Estimate) -> str:
    value = units.format_number(estimate.value, 3)
    return value if estimate.low is None else f"{value} {wording.interval_text(estimate)}"


def _long(benches: Sequence[Bench]) -> Table:
    rows: list[tuple[str, ...]] = []
    for bench in benches:
        for index, speed in enumerate(bench.speeds):
            counts = {"machines": speed.machines, "runs": speed.runs, "trials": speed.trials}
            slowest = speed.ratio.low is None and speed.ratio.value == 1
            rows.append(
                (
                    wording.clean(bench.label) if not index else "",
                    wording.clean(speed.model),
                    units.format_number(speed.ratio.value, 4),
                    "the slowest" if slowest else _interval(speed.ratio),
                    f"{counts[speed.unit]} {speed.unit}" if speed.unit else str(speed.machines),
                    speed.note,
                )
            )
    head = Column.head(("benchmark", "CPU model"), ("speed", "interval", "n"))
    return Table((*head, Column("note", roomy=True)), tuple(rows))


def _speed_chart(kind: InstanceType, benches: Sequence[Bench]) -> Chart:
    rows = [
        (f"{wording.clean(bench.label)}: {wording.clean(speed.model)}", speed.ratio)
        for bench in benches
        for speed in bench.speeds
    ][:60]
    figure = figures.dots(rows, figures.Axis("speed relative to the slowest model", "none"))
    figures.vertical(figure["layout"], 1.0, "the slowest", log=False)
    table = Table(
        (Column("what"), *Column.numbers("speed", "interval", "n")),
        tuple(
            (name, _plain(row), _interval(row), str(row.n) if row.n else "–") for name, row in rows
        ),
    )
    return Chart(
        f"census-speed-{wording.slug(kind.name)}",
        f"Speed of CPU models on {wording.clean(kind.name)}",
        figure,
        table,
        "Ratios with their intervals; dots without whiskers have no interval.",
        repeats=True,
    )


def _plain(estimate: Estimate) -> str:
    return units.format_number(estimate.value, 4)


def _expected(census: Census) -> list[Block]:
    rows: list[tuple[str, ...]] = []
    chances: list[tuple[str, ...]] = []
    refused, left_out = [], []
    benches = [(wording.clean(kind.name), bench) for kind in census.kinds for bench in kind.benches]
    for name, bench in benches:
        label = wording.clean(bench.label)
        if bench.expected is None:
            refused.append(f"{name}, {label}: no expected speed: {bench.refused}")
            continue
        mean = bench.expected.mean
        rows.append((name, label, _plain(mean), _interval(mean), str(mean.n)))
        left_out += [
            f"{name}: {wording.clean(model)} was counted but not measured and is excluded."
            for model in bench.expected.left_out
        ]
        chances += [
            (
                name,
                label,
                f"≥ {units.format_number(speed.at_least, 3)}",
                wording.percent(speed.share.value, 3),
                _interval(speed.share),
                wording.joined(wording.clean(model) for model in speed.models) or "none",
            )
            for speed in bench.expected.chances
            # That all are at least as fast as the slowest is no news.
            if round(speed.share.value * mean.n) != mean.n or speed.at_least > 1
        ]
    if not rows:
        return []
    head = Column.head(("type", "benchmark"), ("expected speed", "interval", "n"))
    blocks: list[Block] = [
        Heading("Expected speed of a new instance"),
        Sentence(
            "Mean speed over the mix of models, relative to the slowest. The interval includes "
            "the uncertainty of the shares and of the speeds. n counts machines."
        ),
        Table(head, tuple(rows)),
    ]
    if chances:
        head = Column.head(("type", "benchmark"), ("speed", "probability", "interval"))
        columns = (*head, Column("by", roomy=True))
        blocks.append(Table(columns, tuple(chances), "Probability of at least this speed:"))
    return [*blocks, *items(dict.fromkeys((*left_out, *refused)))]


def _notes(census: Census) -> Iterator[str]:
    if census.identity:
        yield census.identity
    for kind in census.kinds:
        for note in kind.notes:
            yield f"{kind.name}: {note}"
    yield from (*census.notes, *census.left_out)
