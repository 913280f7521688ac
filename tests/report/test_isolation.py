"""What neighbours take, in all four forms of the report."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nephoscope.core.model import RunResult
from nephoscope.features.isolation import charts as isolation_charts
from nephoscope.features.isolation import tables
from nephoscope.features.isolation.records import Cell, Isolation, NamedLoad
from nephoscope.report import feature_sections as sections
from nephoscope.report import heat_maps, report_files, wording
from nephoscope.report.blocks import Chart, Section, Sentence, Table, Tiles
from nephoscope.results import analyse_run
from results.isolated import Truth, make


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return analyse_run.build(make(tmp_path_factory.mktemp("store"), Truth()))


def isolation_of(result: RunResult) -> Isolation:
    found = result.part(Isolation)
    assert found is not None
    return found


def section_of(result: RunResult) -> Section:
    return next(one for one in sections.build_all(result) if one.id == "isolation")


def charts_of(section: Section) -> dict[str, Chart]:
    return {block.id: block for block in section.blocks if isinstance(block, Chart)}


def changed(result: RunResult, **parts: Any) -> RunResult:
    found = isolation_of(result)
    others = tuple(part for part in result.parts if part is not found)
    return replace(result, parts=(*others, replace(found, **parts)))


def test_the_summary_shows_slowdowns_not_baselines(run: RunResult) -> None:
    cells = isolation_of(run).cells
    worst = max(
        (cell for cell in cells if cell.intensity == 1 and not tables.is_idle(cell)),
        key=lambda cell: cell.factor.value if cell.factor else 0.0,
    )
    summary = next(one for one in sections.build_all(run) if one.id == "summary")
    (tiles,) = [block.tiles for block in summary.blocks if isinstance(block, Tiles)]
    assert worst.factor is not None
    assert all(tile.label.startswith("Slowdown by ") for tile in tiles)
    assert tiles[0].value == f"{wording.value_text(wording.plain(worst.factor))} ×"
    assert tiles[0].n == str(worst.factor.n)


def test_the_question_of_the_plan_is_answered_first(run: RunResult) -> None:
    asked = replace(run, run=replace(run.run, question="Who slows whom?"))
    question, answer, *_ = sections.build_all(asked)[0].blocks
    assert isinstance(question, Sentence)
    assert isinstance(answer, Sentence)
    assert (question.text, answer.lead) == ("Question: Who slows whom?", True)
    assert "pairs of victim and load" in answer.text
    text = report_files.terminal(asked, colour=False, width=200, full=False)
    assert answer.text in " ".join(text.split())


def test_every_factor_at_full_intensity_stands_everywhere(run: RunResult, tmp_path: Path) -> None:
    paths = report_files.write(run, tmp_path)
    assert json.loads(paths.json.read_text())["isolation"]["cells"]
    forms = {
        "html": paths.html.read_text(encoding="utf-8"),
        "markdown": paths.markdown.read_text(encoding="utf-8").replace("\\", ""),
        "terminal": report_files.terminal(run, colour=False, width=79),
    }
    full = [cell for cell in isolation_of(run).cells if cell.intensity == 1]
    assert len(full) == 6
    for name, text in forms.items():
        dense = re.sub(r"\s", "", text)
        for cell in full:
            assert cell.factor is not None
            shown = wording.plain(cell.factor)
            assert wording.value_text(shown) in text, name
            assert re.sub(r"\s", "", wording.interval_text(shown)) in dense, name
        assert "isolationindex" in dense.lower(), name
        assert "recovered" in text, name
        assert "rises" in text, name
    assert all(len(line) < 80 for line in forms["terminal"].splitlines())


def test_the_map_colours_only_what_excludes_one(run: RunResult) -> None:
    figure = charts_of(section_of(run))["isolation-map"].figure
    boxes = [shape for shape in figure["layout"]["shapes"] if shape["type"] == "rect"]
    assert len(boxes) == 6
    clear = [box for box in boxes if box["fillcolor"] == "rgba(0,0,0,0)"]
    excluded = [c for c in isolation_of(run).cells if c.intensity == 1 and c.excludes_one]
    assert len(boxes) - len(clear) == len(excluded) >= 2
    texts = [one["text"] for one in figure["layout"]["annotations"]]
    assert all(re.fullmatch(r"<b>[\d.]+</b><br>\[[\d.]+, [\d.]+\]<br>n 10", text) for text in texts)


def test_what_was_not_measured_is_hatched_and_says_so(run: RunResult) -> None:
    cells = isolation_of(run).cells
    gone = next(c for c in cells if c.resource == "cpu" and c.victim.benchmark == "disk.sync")
    fewer = tuple(c for c in cells if (c.resource, c.victim) != (gone.resource, gone.victim))
    figure = charts_of(section_of(changed(run, cells=fewer)))["isolation-map"].figure
    texts = [one["text"] for one in figure["layout"]["annotations"]]
    assert texts.count("not measured") == 1
    dotted = [s for s in figure["layout"]["shapes"] if s["line"].get("dash") == "dot"]
    assert len(dotted) == 1
    slanted = [s for s in figure["layout"]["shapes"] if s["type"] == "line"]
    assert len(slanted) >= 3
    for line in slanted:
        assert abs(line["x0"] - line["x1"]) <= 1
        assert dotted[0]["y0"] - 1e-9 <= line["y0"] <= dotted[0]["y1"] + 1e-9


def test_colours_grow_with_the_factor_and_tell_gain_from_loss() -> None:
    def alpha(text: str) -> float:
        return float(text.rstrip(")").split(",")[-1])

    assert heat_maps.colour(None) == "rgba(0,0,0,0)"
    assert alpha(heat_maps.colour(1.1)) < alpha(heat_maps.colour(2)) < alpha(heat_maps.colour(4))
    assert heat_maps.colour(4) == heat_maps.colour(40)
    assert heat_maps.colour(2).split(",")[:3] != heat_maps.colour(0.5).split(",")[:3]


def test_curves_are_over_what_the_load_reached(run: RunResult) -> None:
    charts = charts_of(section_of(run))
    dose = [chart for name, chart in charts.items() if name.startswith("isolation-dose")]
    assert len(dose) == 1  # disk.sync does not respond
    memory = next(t for t in dose[0].figure["data"] if t["name"] == "memory bandwidth")
    assert memory["x"] == pytest.approx([0, 0.2, 0.4, 0.8], rel=0.03)
    assert memory["y"] == pytest.approx([1, 1.25, 1.5, 2], rel=0.03)
    assert max(memory["error_y"]["array"]) > 0


def test_violins_hold_every_trial_and_end_where_they_end(run: RunResult) -> None:
    charts = charts_of(section_of(run))
    found = next(c for name, c in charts.items() if name.startswith("isolation-around"))
    traces = found.figure["data"]
    assert [trace["name"] for trace in traces if trace["showlegend"]] == [
        "baseline before",
        "loaded",
        "recovery",
    ]
    assert len(traces) == 9  # three loads, three phases
    for trace in traces:
        assert trace["type"] == "violin"
        assert len(trace["y"]) == len(trace["x"]) == 10
        assert (trace["spanmode"], trace["points"]) == ("hard", "all")
    assert [row[-1] for row in found.table.rows] == ["10"] * 9


def test_few_values_have_no_density() -> None:
    groups = [isolation_charts.shapes.ViolinGroup("a", "before", (1.0, 2.0, 3.0))]
    axis = isolation_charts.figures.Axis("x", "ns")
    (trace,) = isolation_charts.shapes.violins(["a"], ["before"], groups, axis)["data"]
    assert trace["line"]["width"] == 0
    assert trace["showlegend"]
    assert trace["box"]["visible"] is False


def test_a_control_that_fails_is_a_warning(run: RunResult) -> None:
    idle = isolation_of(run).idle
    assert idle is not None
    loud = replace(idle, sentence=idle.sentence + " That is too many: do not believe it.")
    tones = [
        item.tone
        for block in section_of(changed(run, idle=loud)).blocks
        for item in getattr(block, "items", ())
    ]
    assert tones[0] == "warning"


def test_names_of_resources_stand_in_a_table(run: RunResult) -> None:
    named = (NamedLoad("victim", "memory", 1.0, 1, "cache", "s", ("memory", "cache")),)
    section = section_of(changed(run, named=named))
    table = next(
        b
        for b in section.blocks
        if isinstance(b, Table) and b.columns[0].title == "loaded resource"
    )
    assert table.rows == (("memory at 100 %", "cache", "no", "memory, cache"),)


def test_without_cells_it_says_so(run: RunResult) -> None:
    empty: tuple[Cell, ...] = ()
    section = section_of(changed(run, cells=empty, responses=(), indices=(), idle=None, drifts=()))
    assert "No round has both a baseline" in section.blocks[0].text  # type: ignore[union-attr]


def test_a_run_without_loads_has_no_such_section(survey: RunResult) -> None:
    assert all(one.id != "isolation" for one in sections.build_all(survey))


@pytest.mark.parametrize("values", [[5.0, 5.0], [0.0, 11.7, 11.7], [-2.0, 3.0]])
def test_no_violin_lies_on_the_frame(values: list[float]) -> None:
    low, high = isolation_charts.shapes._with_room(values)
    assert high > max(values)
    assert low < min(values) or low == min(values) == 0
