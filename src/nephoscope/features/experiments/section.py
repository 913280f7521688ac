"""What the experiment says: its factors, its baseline, and how far both can be believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from nephoscope.core.model import Estimate, RunResult
from nephoscope.features.experiments.records import Against, Components, Experiment, FactorEffect
from nephoscope.report import charts, figures, wording
from nephoscope.report.blocks import Block, Chart, Heading, Section, Sentence, Table, items
from nephoscope.report.columns import estimate, ratio, spread, table, text
from nephoscope.report.sections.excluded_trials import settings_without_results

MAX_ROWS = 60
"""Lines of one table; the others are in result.json."""

_NO_EFFECT = 1.0
_EQUIVALENCE = "Equivalence is decided by the 90 % interval where the interval shown is at 95 %."


def build(result: RunResult) -> Section | None:
    """Design, A/A control, main effects, comparisons with the baseline, components of variance."""
    effects = result.part(Experiment)
    if effects is None:
        return None
    blocks: list[Block] = [Sentence(_design(effects), lead=True)]
    confounded = (
        f"{design.benchmark}: {text}." for design in effects.designs for text in design.confounded
    )
    blocks += items(dict.fromkeys(confounded), title="Confounded effects")
    if effects.controls is not None:
        bad = effects.controls.cells > 0 and "too many" in effects.controls.sentence
        blocks += items([effects.controls.sentence], "warning" if bad else "info")
    blocks += _effects(effects.effects)
    # The section on isolation states the same of loads, in pairs of trials.
    blocks += _baselines(
        [comparison for comparison in effects.comparisons if "resource" not in comparison.changed]
    )
    blocks += _components(effects.components)
    if not any("resource" in comparison.changed for comparison in effects.comparisons):
        blocks += settings_without_results(result)
    blocks += items(effects.notes, title="Unavailable statistics")
    return Section("experiment", "Effects", tuple(blocks))


def _design(experiment: Experiment) -> str:
    parts = []
    for crossing in experiment.designs:
        factors = [f"{wording.clean(name)} ({len(of)})" for name, of in crossing.levels.items()]
        what = {
            "full": "full crossing",
            "regular": f"regular fraction of resolution {crossing.resolution}",
            "balanced": "balanced fraction",
            "partial": "crossing with excluded combinations",
        }[crossing.kind]
        of = f" of {wording.joined(factors)}" if factors else ""
        name = wording.clean(crossing.benchmark)
        if factors:
            parts.append(f"{name}: {what}{of}, {wording.plural(crossing.settings, 'setting')}")
        else:
            parts.append(f"{name}: {wording.plural(crossing.settings, 'setting')}")
    return "; ".join(parts) + ". Comparisons pair trials of the same round."


def _chart_of(
    id: str,
    title: str,
    caption: str,
    axis: str,
    rows: Sequence[tuple[str, Estimate | None]],
    data: Table,
) -> list[Block]:
    """Dots with intervals around a line at 'no effect'; the table alone where no ratio exists."""
    ratios = [(name, wording.plain(estimate)) for name, estimate in rows if estimate is not None]
    if not ratios:
        return [Heading(title), Sentence(caption, roomy=True), data]
    del ratios[charts.MAX_DOTS :]
    ends = [
        end
        for _, estimate in ratios
        for end in (estimate.value, estimate.low, estimate.high)
        if end and end > 0
    ]
    log = min(estimate.value for _, estimate in ratios) > 0 and max(ends) / min(ends) > 10
    figure = figures.dots(ratios, figures.Axis(axis, "none", log=log))
    figures.vertical(figure["layout"], _NO_EFFECT, "no effect", log=log)
    return [Chart(id, title, figure, data, caption, brief=data)]


def _effects(effects: Sequence[FactorEffect]) -> list[Block]:
    lines = headline_lines(effects)[:MAX_ROWS]
    if not lines:
        return []
    several = len({line.target for line in lines}) > 1

    def metric(line: FactorEffect) -> str:
        where = f", {wording.clean(line.target)}" if several else ""
        return f"{wording.line_name(line.benchmark, line.metric, line.fixed)}{where}"

    def level(line: FactorEffect) -> str:
        return level_text(line.effect.factor, line.effect.level)

    data = table(
        lines,
        text("level", level),
        text("reference", lambda line: level_text(line.effect.factor, line.effect.reference)),
        text("metric", metric),
        *ratio(
            "ratio",
            lambda line: line.effect.comparison.ratio,
            lambda line: line.effect.comparison.n_a,
        ),
        text("verdict", lambda line: line.effect.comparison.verdict.word),
    )
    dots = [(f"{level(line)}: {metric(line)}", line.effect.comparison.ratio) for line in lines]
    caption = (
        "Each level relative to the first level or the baseline, averaged over all other "
        "factors within each round (ratio of geometric means); n counts rounds. Verdicts "
        f"are adjusted for all rows (Holm). {_EQUIVALENCE}"
    )
    return _chart_of("experiment-factors", "Effect of each factor", caption, "ratio", dots, data)


def _baselines(comparisons: Sequence[Against]) -> list[Block]:
    headline = [comparison for comparison in comparisons if comparison.headline]
    hidden = [comparison for comparison in comparisons if not comparison.headline]
    visible = headline or hidden
    if not visible:
        return []
    data = _against_table(visible[:MAX_ROWS])
    caption = (
        "Slowdown relative to the baseline in the same round; above 1 is worse for times "
        "and rates alike; n counts rounds. Verdicts are adjusted for all rows (Holm). "
        f"{_EQUIVALENCE}"
    )
    dots = [
        (
            f"{change_text(comparison)}: "
            f"{wording.full_name(comparison.benchmark, comparison.metric)}",
            comparison.interference,
        )
        for comparison in visible
    ]
    blocks = _chart_of(
        "experiment-baseline", "Relative to the baseline", caption, "slowdown", dots, data
    )
    if headline and hidden:
        rest = _against_table(hidden[:MAX_ROWS])
        more = len(hidden) - len(rest.rows)
        title = "Other metrics" + (f", {more} more in result.json" if more else "")
        blocks.append(replace(rest, caption=title, collapsed=True))
    return blocks


def _against_table(rows: Sequence[Against]) -> Table:
    return table(
        rows,
        text("alternative", change_text),
        text("metric", lambda row: wording.full_name(row.benchmark, row.metric)),
        *ratio("factor", lambda row: row.interference, lambda row: row.comparison.n_a),
        text("verdict", lambda row: row.comparison.verdict.word),
    )


def change_text(effect: Against) -> str:
    """Returns what differs from the baseline, then what both have."""
    parts = [level_text(name, level) for name, level in effect.changed.items()]
    if effect.target != effect.baseline_target:
        parts.insert(
            0, f"{wording.clean(effect.target)} relative to {wording.clean(effect.baseline_target)}"
        )
    same = [
        level_text(name, level)
        for name, level in effect.factors.items()
        if name not in effect.changed
    ]
    change = ", ".join(parts) or "itself"
    return f"{change} ({', '.join(same)})" if same else change


def level_text(factor: str, level: Any) -> str:
    """Returns a level with the name of its factor."""
    return f"{wording.clean(factor)} {wording.clean(_say(factor, level))}"


def _say(factor: str, level: Any) -> str:
    """A level as people write it: sizes and times with their units."""
    label = wording.level_text(factor, level)
    stem = factor.removesuffix("_bytes").removesuffix("_ns").replace("_", " ")
    if isinstance(level, int | float) and not isinstance(level, bool) and label.startswith(stem):
        return label[len(stem) :].strip()
    return str(level).lower() if isinstance(level, bool) else str(level)


Line = TypeVar("Line", Against, FactorEffect, Components)


def headline_lines(every_line: Sequence[Line]) -> Sequence[Line]:
    """Returns the headline metrics; all of them where none is one."""
    return [line for line in every_line if line.headline] or every_line


def _components(every_component: Sequence[Components]) -> list[Block]:
    visible = headline_lines(every_component)
    if not visible:
        return []
    levels = dict.fromkeys(
        part.level for components in visible for part in components.nested.components
    )

    def shares(component: Components) -> list[str | None]:
        own = {
            part.level: wording.percent(part.share, 2) + (" *" if part.negative else "")
            for part in component.nested.components
        }
        return list(map(own.get, levels))

    rows = table(
        visible[:MAX_ROWS],
        text("metric", lambda row: wording.line_name(row.benchmark, row.metric, row.factors)),
        *spread((f"{level}s" for level in levels), shares),
        *estimate("mean", lambda row: row.nested.mean),
    )
    explanation = (
        "Shares of the variance between instances, boots and rounds. The interval of the "
        "mean uses the outermost level, because rounds on one machine do not predict "
        "another machine; n counts its repetitions. * Negative estimate, set to zero."
    )
    return [Heading("Components of variance"), Sentence(explanation), rows]
