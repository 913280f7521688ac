"""Simulated runs in all four forms of the report."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from nephoscope.core.model import MetricResult, RunResult
from nephoscope.features.simulation import tables, world_map
from nephoscope.features.simulation.records import Simulation
from nephoscope.report import feature_sections as sections
from nephoscope.report import report_files, selection, wording
from nephoscope.report.blocks import Chart, Sentence, Table
from nephoscope.results.findings import findings
from results import simulated

MS = simulated.MS


@pytest.fixture(scope="module")
def everything() -> RunResult:
    return simulated.result_of(
        simulated.deployments(), simulated.placement(), simulated.scheduler(), simulated.saving()
    )


def charts_of(result: RunResult) -> dict[str, Chart]:
    """The charts that sections draw, also those of so few points that a page has a table."""
    entries = sections.sections_of(result)
    build = sections.builders(entries)
    return {
        block.id: block
        for section in (build[entry.name](result) for entry in entries)
        for block in (section.blocks if section is not None else ())
        if isinstance(block, Chart)
    }


def traces(chart: Chart) -> dict[str, dict[str, object]]:
    return {str(trace.get("name")): trace for trace in chart.figure["data"]}


def test_the_outlines_are_small_closed_and_on_the_globe() -> None:
    static = resources.files("nephoscope.report").joinpath("static", "coastline.json")
    assert len(static.read_bytes()) < 20_000
    for ring in json.loads(static.read_text()):
        assert len(ring) % 2 == 0
        assert ring[:2] == ring[-2:]
        assert all(abs(value) <= 1800 for value in ring[::2])
        assert all(abs(value) <= 900 for value in ring[1::2])


@pytest.mark.parametrize(
    ("name", "latitude", "longitude", "on_land"),
    [
        ("Kansas", 38.5, -98.0, True),
        ("Frankfurt", 50.1, 8.7, True),
        ("Alice Springs", -23.7, 133.9, True),
        ("the middle of the Atlantic", 30.0, -45.0, False),
        ("the middle of the Pacific", 0.0, -140.0, False),
        ("the Caspian Sea", 42.0, 50.5, False),
    ],
)
def test_land_is_where_land_is(name: str, latitude: float, longitude: float, on_land: bool) -> None:
    """By the crossing rule over all outlines, holes included."""
    x, y = world_map.land()
    crossings = 0
    for x0, y0, x1, y1 in zip(x, y, x[1:], y[1:], strict=False):
        if x0 is None or y0 is None or x1 is None or y1 is None:
            continue
        if (y0 > latitude) != (y1 > latitude):
            crossings += longitude < x0 + (latitude - y0) * (x1 - x0) / (y1 - y0)
    assert (crossings % 2 == 1) is on_land, name


def test_the_map_has_users_by_size_and_colour_and_the_sites(everything: RunResult) -> None:
    chart = charts_of(everything)["map-0"]
    found = traces(chart)
    users = found["users"]
    marker = users["marker"]
    assert isinstance(marker, dict)
    assert marker["color"] == [value * MS for value in (80.5, 269.9, 504.9)]
    assert marker["size"] == sorted(marker["size"], reverse=True)
    # Pale is the objective: 300 ms between 0 and the slowest, 504.9.
    assert marker["colorscale"][1][0] == pytest.approx(300 / 504.9, abs=1e-3)
    assert found["sites"]["text"] == ["\u2003\u2002<b>us</b>"]
    assert "1 location without coordinates" in chart.caption
    rows = {row[0]: row for row in chart.table.rows}
    assert rows["nowhere"][-1] == "not known"
    assert rows["asia"][-1] == "25.0° N 95.0° E"


def test_places_at_one_point_are_drawn_side_by_side() -> None:
    spread = world_map.apart({"a": (10.0, 20.0), "b": (10.0, 20.0), "c": (0.0, 0.0)})
    assert spread == {"a": (10.0, 17.5), "b": (10.0, 22.5), "c": (0.0, 0.0)}


def test_hours_are_curves_from_0_to_24(everything: RunResult) -> None:
    charts = charts_of(everything)
    (curve,) = [t for t in charts["hourly-requests-0"].figure["data"] if t.get("name") == "us"]
    assert len(curve["x"]) == 24
    assert curve["y"][11] == 13_000_000
    assert charts["hourly-requests-0"].figure["layout"]["xaxis"]["range"] == [0, 24]
    assert "hourly-response-time-mean-ns-0" in charts


def test_the_distribution_by_region_is_cut_by_the_objective(everything: RunResult) -> None:
    chart = charts_of(everything)["response-0"]
    assert set(traces(chart)) == {"N. America", "Europe", "Asia"}
    (label,) = chart.figure["layout"]["annotations"]
    assert label["text"] == "objective 300 ms"
    assert label["x"] == pytest.approx(math.log10(300 * MS))


@pytest.mark.parametrize("objective_ms", [5, 300, 60_000])
def test_the_axis_reaches_the_objective_wherever_it_lies(objective_ms: float) -> None:
    places = {**simulated.PLACES, "objective_ms": objective_ms}
    records, lines, merged = simulated.deployments()
    moved = [replace(one, documents={"locations": places}) for one in records]
    chart = charts_of(simulated.result_of((moved, lines, merged)))["response-0"]
    (line,) = chart.figure["layout"]["shapes"]
    low, high = chart.figure["layout"]["xaxis"]["range"]
    assert low < math.log10(line["x0"]) < high
    assert line["x0"] == objective_ms * MS
    # And the curves stay in it.
    values = [x for trace in chart.figure["data"] for x in trace["x"] if x]
    assert low < math.log10(min(values)) <= math.log10(max(values)) < high


def test_the_front_marks_the_choice(everything: RunResult) -> None:
    chart = charts_of(everything)["front-0"]
    line, chosen = chart.figure["data"]
    assert line["x"] == [1.0, 2.0, 3.0]
    assert (chosen["x"], chosen["y"]) == ([2.0], [0.93])
    assert [row[-1] for row in chart.table.rows] == ["", "chosen", ""]


def test_the_strip_shows_runs_of_180_and_waits_of_60(everything: RunResult) -> None:
    chart = charts_of(everything)["simulated-strip-0"]
    bars = traces(chart)["running"]
    x = bars["x"]
    assert isinstance(x, list)
    assert [(a / MS, b / MS) for a, b in zip(x[:6:3], x[1:6:3], strict=True)] == [
        (0, 180),
        (240, 420),
    ]
    assert {row[3] for row in chart.table.rows} == {"60.0 ms"}


def test_one_length_is_a_step_from_the_ground(everything: RunResult) -> None:
    for curve in charts_of(everything)["simulated-run-ns-0"].figure["data"]:
        assert (curve["x"], curve["y"]) == ([180 * MS] * 2, [0.0, 1.0])


def test_a_saving_may_be_a_loss() -> None:
    chart = charts_of(simulated.result_of(simulated.saving(ratio=-0.05)))["saving-0"]
    (curve,) = chart.figure["data"]
    assert curve["x"][0] == pytest.approx(-0.05)
    assert curve["y"][-1] == 1


def test_the_surface_has_the_figures_of_the_formula(everything: RunResult) -> None:
    chart = charts_of(everything)["surface-0"]
    (trace,) = chart.figure["data"]
    assert trace["z"][0][1] == pytest.approx(0.3)
    assert chart.table.rows[0][2] == "30.0 %"


def test_deployments_stand_beside_each_other_like_a_table_of_a_paper() -> None:
    result = simulated.result_of(simulated.three_deployments())
    section = next(one for one in sections.build_all(result) if one.id == "deployments")
    table = section.blocks[0]
    assert isinstance(table, Table)
    assert [column.title for column in table.columns[1:]] == ["us", "eu", "both"]
    asia = next(row for row in table.rows if row[0] == "Asia")
    assert [str(cell).split()[0] for cell in asia[1:]] == ["505", "625", "306"]


def test_many_deployments_have_one_table_and_few_figures() -> None:
    records, lines = [], []
    for setting in range(9):
        given = {"site_count": setting}
        told = {"locations": simulated.PLACES}
        records.append(simulated.record("sim.geo", setting=setting, factors=given, documents=told))
        lines += simulated.geo_lines(simulated.MEANS, given)
    result = simulated.result_of((records, lines, {}))
    assert sum(id.startswith("map-") for id in charts_of(result)) == 6
    section = next(one for one in sections.build_all(result) if one.id == "deployments")
    assert Sentence("3 further deployments: see the table above.") in section.blocks


def test_quirks_are_said() -> None:
    scenario = json.dumps({"compat": "cloudanalyst"})
    records = [simulated.record("sim.geo", params={"scenario": scenario})]
    result = simulated.result_of((records, simulated.geo_lines(simulated.MEANS), {}))
    text = report_files.terminal(result, colour=False, width=79)
    assert "cloudanalyst compatibility mode" in " ".join(text.split())


def test_all_four_forms_hold_the_figures(everything: RunResult, tmp_path: Path) -> None:
    paths = report_files.write(everything, tmp_path)
    forms = (
        paths.html.read_text(encoding="utf-8"),
        paths.markdown.read_text(encoding="utf-8").replace("\\", ""),
        report_files.terminal(everything, colour=False, width=79),
    )
    for text in forms:
        assert "217" in text
        assert "Recommended sites: us and eu" in " ".join(text.split())
    assert all(len(line) <= 79 for line in forms[2].splitlines())
    assert json.loads(paths.json.read_text())["simulation"]["deployments"]


def test_a_simulator_is_no_riddling_machine(everything: RunResult) -> None:
    known = {"sim": {"simulated": {"version": "1.2"}, "hypervisor": {"name": "nephoscope-sim"}}}
    found = findings(known, everything.metrics, None, everything.parts)
    assert {one.id for one in found} <= {"beyond_objective", "site_too_busy", "fragile_choice"}
    result = replace(everything, fingerprints=known)
    ids = [section.id for section in sections.build_all(result)]
    assert "machine" not in ids
    text = " ".join(report_files.terminal(result, colour=False, width=79).split())
    assert "This is simulated (nephoscope-sim 1.2), not measured" in text


def test_what_could_not_be_read_is_said_once() -> None:
    told = {"timeline": {"vcpus": [{"vm": "a"}]}}
    records = [simulated.record("sim.scheduler", documents=told)]
    result = simulated.result_of((records, simulated.scheduler()[1], {}), simulated.saving())
    text = report_files.terminal(result, colour=False, width=79)
    assert text.count("'timeline' cannot be read") == 1


def test_instances_that_never_change_are_no_curve() -> None:
    records, lines, merged = simulated.deployments()
    lines += [
        simulated.line("sim.geo", "instances", 10.0, "count", {"site": "us", "hour": str(hour)})
        for hour in range(24)
    ]
    ids = charts_of(simulated.result_of((records, lines, merged)))
    assert "hourly-requests-0" in ids
    assert "hourly-instances-0" not in ids


def test_what_nobody_asked_has_no_section(survey: RunResult) -> None:
    names = {entry.name for entry in sections.sections_of(survey)}
    assert not {"deployments", "placement", "simulated_scheduler", "saving"} & names


def test_names_are_short_and_apart() -> None:
    records, lines = [], []
    for setting, text in enumerate(("{" + "x" * 300, "{" + "x" * 301)):
        given = {"scenario": text}
        records.append(simulated.record("sim.geo", setting=setting, factors=given))
        lines += simulated.geo_lines(simulated.MEANS, given)
    found = simulated.result_of((records, lines, {})).part(Simulation)
    assert found is not None
    names = tables.names_of(found.deployments)
    assert len(set(names)) == 2
    assert all(len(name) < 60 for name in names)


def test_figures_have_interval_and_n_and_no_digits_beyond_them() -> None:
    one = simulated.line("sim.geo", "requests", 64_976_750.0, "count").estimate
    assert tables.estimate_text(one) == "65,000,000 [64,300,000, 65,600,000]"
    exact = replace(one, low=one.value, high=one.value)
    assert tables.estimate_text(exact) == "64,976,750"
    cost = simulated.line("sim.geo", "cost_usd", 50.0, "none").estimate
    assert tables.estimate_text(cost) == "$50.00 [$49.50, $50.50]"
    figures = {"requests": one, "cost_usd": cost}
    assert tables.over([figures]) == ", n = 10"
    alone = tables.over([{"requests": exact}])
    assert alone == ", n = 10; without an interval where replications agree"
    assert tables.over([{"requests": one}, {"requests": replace(one, n=3)}]) == ""


def test_the_tables_of_a_deployment_say_over_how_many_replications(everything: RunResult) -> None:
    (section,) = [one for one in sections.build_all(everything) if one.id == "deployments"]
    captions = [one.caption for one in section.blocks if isinstance(one, Table)]
    assert captions == ["Response time by region, n = 10", "By site, n = 10", "Costs, n = 10"]
    (lead,) = [one.text for one in section.blocks if isinstance(one, Sentence) and one.lead]
    assert "65,300,000 [64,600,000, 66,000,000] requests per replication" in lead
    assert "the cost is $36.00 [$35.64, $36.36]" in lead


def test_hours_stand_in_their_order_and_user_bases_beside_regions() -> None:
    def one(**factors: str) -> MetricResult:
        return simulated.line("sim.geo", "response_time_mean_ns", MS, "ns", factors)

    listed = [one(hour=hour) for hour in ("0", "1", "10", "11", "2")]
    assert [m.factors["hour"] for m in selection.natural_order(listed)] == [
        "0", "1", "2", "10", "11",
    ]  # fmt: skip
    assert wording.factors_text({"region": "asia"}) == "asia"
    assert wording.factors_text({"user_base": "asia"}) == "user base asia"


def test_lengths_that_would_be_squeezed_are_drawn_on_a_logarithmic_axis() -> None:
    records, lines, merged = simulated.scheduler()
    assert "type" not in axis_of_runs(records, lines, merged)
    key = next(key for key in merged if key[1] == "run_ns")
    wide = {**merged, key: ([4 * MS, 180 * MS, 30_000 * MS], [60, 19, 1])}
    assert axis_of_runs(records, lines, wide)["type"] == "log"


def axis_of_runs(*made: Any) -> dict[str, Any]:
    chart = charts_of(simulated.result_of(made))["simulated-run-ns-0"]
    axis = chart.figure["layout"]["xaxis"]
    assert isinstance(axis, dict)
    return axis
