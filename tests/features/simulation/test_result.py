"""Simulated runs from lines and documents whose every figure the test sets."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests import schemas
from tests.results import simulated
from tests.results.made import run_data
from tests.results.simulated import MS, record

from nephoscope.core.model import TrialStatus
from nephoscope.features.simulation.records import CACHE, SITE, USER_BASE, Simulation
from nephoscope.features.simulation.result import analyse
from nephoscope.report import report_files


def found_of(*made: object) -> Simulation:
    found = simulated.result_of(*made).part(Simulation)  # type: ignore[arg-type]
    assert isinstance(found, Simulation)
    return found


def test_a_deployment_has_its_places_figures_hours_and_costs() -> None:
    (one,) = found_of(simulated.deployments()).deployments
    assert one.objective_ns == 300 * MS
    assert [place.kind for place in one.places] == [USER_BASE] * 4 + [SITE, CACHE]
    assert one.places[0].users == 42000
    assert one.places[3].latitude is None
    assert one.overall.figures["response_time_mean_ns"].value == 217.3 * MS
    # Lines of a region or an hour are none of all together.
    assert one.overall.figures["requests"].value == 65_300_000
    asia = next(region for region in one.regions if region.name == "Asia")
    assert asia.figures["response_time_mean_ns"].value == pytest.approx(504.9 * MS)
    (site,) = one.sites
    assert site.figures["utilisation_ratio"].value == 0.97
    by_hour = {(curve.metric, curve.kind, curve.of): curve for curve in one.curves}
    assert by_hour["requests", "site", "us"].hours == tuple(range(24))
    hours = by_hour["response_time_mean_ns", "", ""].estimates
    assert [hour.value for hour in hours] == [(200 + hour) * MS for hour in range(24)]
    assert [(cost.part, cost.estimate.value) for cost in one.costs] == [
        ("instances", 24.0),
        ("transfer", 12.0),
    ]


def test_conditions_of_the_plan_make_deployments_apart() -> None:
    found = found_of(simulated.three_deployments()).deployments
    assert [one.conditions for one in found] == [
        {"placement": "us"},
        {"placement": "eu"},
        {"placement": "both"},
    ]
    means = [
        next(region.figures["response_time_mean_ns"].value for region in one.regions
             if region.name == "Asia")
        for one in found
    ]  # fmt: skip
    assert means == pytest.approx([504.9 * MS, 625 * MS, 305.9 * MS])


def test_a_placement_is_cheapest_first_and_knows_what_was_chosen() -> None:
    (one,) = found_of(simulated.placement()).placements
    assert [option.cost_usd_per_h for option in one.front] == [1.0, 2.0, 3.0]
    assert [option.chosen for option in one.front] == [False, True, False]
    assert [moved.met for moved in one.sensitivity] == [False, True]
    assert (one.met, one.confirmed) == (True, True)
    assert one.figures["bound_ratio"].value == 0


def test_a_scheduler_has_its_guests_and_tracks_within_the_window() -> None:
    (one,) = found_of(simulated.scheduler()).schedulers
    assert [(guest.vm, guest.vcpu) for guest in one.guests] == [
        ("guest", 0),
        ("guest", 1),
        ("web", None),
    ]
    assert one.guests[0].figures["run_p50_ns"].value == 180 * MS
    assert len(one.tracks) == 2
    assert one.tracks[0].runs[-1] == (1920 * MS, 2000 * MS)


def test_runs_on_two_processors_that_touch_are_one() -> None:
    runs = [[30, 40, 0], [0, 10, 0], [10, 20, 1]]
    told = {"vcpus": [{"vm": "a", "vcpu": "0", "intervals": runs}]}
    found = analyse(run_data([record("sim.scheduler", documents={"timeline": told})]))
    assert found is not None
    (track,) = found.schedulers[0].tracks
    assert track.runs == ((0, 20), (30, 40))
    assert found.schedulers[0].window_ns == 40


def test_a_selection_has_its_surface() -> None:
    (one,) = found_of(simulated.saving()).selections
    assert one.surface is not None
    # 1 - E(X)/x at p = 0.1: 30 % at x = 1.5 and 81 % at x = 10.
    assert one.surface.saving[0][1] == pytest.approx(0.3)
    assert one.surface.saving[0][4] == pytest.approx(0.81)


def test_only_trials_that_count_give_documents() -> None:
    other = {**simulated.PLACES, "objective_ms": 999}
    records = [
        record("sim.geo", round=0, documents={"locations": other}),
        record("sim.geo", round=1, documents={"locations": other}, status=TrialStatus.INVALID),
        record("sim.geo", round=2, documents={"locations": simulated.PLACES}),
    ]
    found = analyse(run_data(records, simulated.geo_lines(simulated.MEANS)))
    assert found is not None
    assert found.deployments[0].objective_ns == 300 * MS


def test_a_run_without_simulations_has_none() -> None:
    assert analyse(run_data([record("null")])) is None


def test_the_objective_and_the_quirks_are_those_of_the_scenario() -> None:
    scenario = json.dumps({"name": "small", "objective_ms": 250, "compat": "cloudanalyst"})
    records = [record("sim.geo", params={"scenario": scenario})]
    found = analyse(run_data(records, simulated.geo_lines(simulated.MEANS)))
    assert found is not None
    assert found.deployments[0].objective_ns == 250 * MS
    assert found.deployments[0].compat == "cloudanalyst"
    assert found.deployments[0].scenario == "small"
    assert found.deployments[0].places == ()


def test_a_built_in_scenario_goes_by_the_name_it_was_asked_for() -> None:
    found = analyse(run_data([record("sim.geo", params={"scenario": "facebook-1"})]))
    assert found is not None
    assert found.deployments[0].scenario == "facebook-1"


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("locations", {"user_bases": [{"region": "Asia"}]}),
        ("locations", {"sites": [{"name": "us", "latitude": 140, "longitude": 0}]}),
        ("locations", ["us"]),
    ],
)
def test_a_document_that_is_none_of_its_kind_is_a_note(name: str, document: object) -> None:
    records = [record("sim.geo", documents={name: document})]
    found = analyse(run_data(records, simulated.geo_lines(simulated.MEANS)))
    assert found is not None
    assert found.deployments[0].places == ()
    (note,) = found.notes
    assert note.startswith(f"The document '{name}' cannot be read")
    assert "\n" not in note


def test_a_surface_of_another_shape_is_a_note() -> None:
    told = {"surface": {"share_of_fast": [0.1, 0.2], "factor": [2.0], "saving_ratio": [[0.1]]}}
    found = analyse(run_data([record("sim.selection", documents=told)]))
    assert found is not None
    assert found.selections[0].surface is None
    assert len(found.notes) == 1


def test_the_document_of_json_keeps_to_its_schema() -> None:
    result = simulated.result_of(
        simulated.deployments(), simulated.placement(), simulated.scheduler(), simulated.saving()
    )
    whole = report_files.document(result)
    schemas.validate(whole, schemas.result_schema())
    document = whole["simulation"]
    assert document["placements"][0]["chosen"] == ["us", "eu"]
    assert document["deployments"][0]["overall"]["figures"]["requests"]["n"] == simulated.N


def test_a_run_of_an_earlier_version_has_its_places() -> None:
    records, lines, _ = simulated.deployments()
    renamed = [replace(one, documents={"places": one.documents["locations"]}) for one in records]
    found, earlier = (analyse(run_data(own, lines)) for own in (records, renamed))
    assert found is not None
    assert found.deployments[0].places
    assert found == earlier
