"""From a scenario to the report: simulations take the road of measurements."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import Run
from tests.unmerged import unmerge

from nephoscope.store import Store


def metrics(result: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (one["metric"], ",".join(map(str, one["factors"].values()))): one["estimate"]
        for one in result["metrics"]
    }


def samples(nephoscope: Run, store: Path) -> list[list[str]]:
    text = nephoscope("export", "latest", "--store", store).out
    kept = ("round", "metric", "value", "count", "factors")
    rows = csv.DictReader(io.StringIO(text))
    return [[row.get(name, "") for name in kept] for row in rows]


def test_a_queue_meets_its_closed_form(nephoscope: Run) -> None:
    done = nephoscope("bench", "sim.queue", "--repetitions", 12, "--seed", 5, "--json")
    assert done.code == 0, done.err
    found = metrics(done.json())
    mean, exact = found["response_time_mean_ns", ""], found["exact_response_time_ns", ""]
    assert abs(exact["value"] / 5e6 - 1) < 1e-12
    # M/M/1 at 0.8 from empty: 400,000 requests have a deviation of the mean of 1.4 %, twelve of
    # them a standard error of 0.4 %; five of those.
    assert abs(mean["value"] / exact["value"] - 1) < 0.02
    assert abs(found["little_ratio", ""]["value"] - 1) < 1e-6


def test_selection_goes_from_the_name_to_the_report(nephoscope: Run, tmp_path: Path) -> None:
    words = ("simulate", "selection", "zhuang-2012", "--set", "fleets=200", "--replications", 6)
    done = nephoscope(*words, "--seed", 3, "--store", tmp_path / "a", "--json")
    assert done.code == 0, done.err
    result = done.json()
    found = metrics(result)
    assert round(found["printed_saving_usd", ""]["value"], 2) == 40_657.04
    assert round(found["corrected_saving_usd", ""]["value"], 2) == 38_170.23
    assert found["saving_ratio", ""]["n"] == 6
    assert abs(found["saving_ratio", ""]["value"] - 0.152) < 0.005
    assert Path(result["run"]["report"]).is_file()
    assert result["run"]["plan"] == "sim-selection-zhuang-2012"

    again = nephoscope(*words, "--seed", 3, "--store", tmp_path / "b")
    assert again.code == 0, again.err
    assert samples(nephoscope, tmp_path / "a") == samples(nephoscope, tmp_path / "b")
    other = nephoscope(*words, "--seed", 4, "--store", tmp_path / "c")
    assert other.code == 0, other.err
    assert samples(nephoscope, tmp_path / "a") != samples(nephoscope, tmp_path / "c")


def test_sites_around_the_world_meet_the_published_figures(nephoscope: Run) -> None:
    """CloudAnalyst's default scenario: 300.06 ms on average, 6058 requests in the hour."""
    words = ("simulate", "geo", "cloudanalyst-default", "--replications", 8, "--seed", 1, "--json")
    done = nephoscope(*words)
    assert done.code == 0, done.err
    found = metrics(done.json())
    assert abs(found["response_time_mean_ns", ""]["value"] / 300.06e6 - 1) < 0.005
    # Bursts of about 100 requests, whose sizes and number vary by a tenth.
    assert abs(found["requests", ""]["value"] / 6058 - 1) < 0.05


PLACES = """\
version: 1
objective_ms: 100
duration_h: 1
user_bases:
  berlin: {lat: 52.5, lon: 13.4, users: {peak: 100, off_peak: 100}, requests_per_user_h: 60}
  tokyo: {lat: 35.7, lon: 139.7, users: {peak: 10, off_peak: 10}, requests_per_user_h: 60}
sites:
  frankfurt: {lat: 50.1, lon: 8.7, instances: 2}
  osaka: {lat: 34.7, lon: 135.5, instances: 2}
  sydney: {lat: -33.9, lon: 151.2, instances: 2}
place: {sites_max: 1}
"""


def test_the_best_place_is_found_and_nothing_is_where_nobody_is(
    nephoscope: Run, tmp_path: Path
) -> None:
    """One site: that beside ten of eleven users. Two: that of the others too."""
    file = tmp_path / "places.yaml"
    file.write_text(PLACES)
    for most, within in ((1, 10 / 11), (2, 1.0)):
        words = ("simulate", "geo", file, "--place", "--replications", 2, "--seed", 1, "--json")
        done = nephoscope(*words, "--set", f"place.sites_max={most}")
        assert done.code == 0, done.err
        found = metrics(done.json())
        # Within the objective for whoever is near: in closed form, so to the noise of the users.
        assert abs(found["within_objective_ratio", ""]["value"] - within) < 0.01
        assert found["bound_ratio", ""]["value"] == 0.0


def test_a_scheduler_gives_the_shares_that_it_was_told(nephoscope: Run) -> None:
    done = nephoscope("simulate", "scheduler", "xen-credit-150", "--replications", 2, "--json")
    assert done.code == 0, done.err
    found = metrics(done.json())
    shares = [one["value"] for (name, _), one in found.items() if name == "cpu_share_ratio"]
    assert len(shares) == 2
    # A window of 60 s cuts a cycle of 240 ms: at most 0.75 x 0.25 x 0.24 / 60.
    assert all(abs(share - 0.75) < 0.001 for share in shares)


def test_a_simulated_machine_is_looked_at_as_a_real_one(nephoscope: Run) -> None:
    words = ("bench", "cpu.gaps", "--target", "sim:linux-quota-150", "--repetitions", 3)
    done = nephoscope(*words, "--set", "duration_ns=4s", "--seed", 2, "--json")
    assert done.code == 0, done.err
    found = metrics(done.json())
    obtained = found["obtained_cpus", ""]["value"]
    # 150 ms in 100 ms; the window of 4 s cuts a period at both ends.
    assert abs(obtained - 1.5) < 0.02
    judged = nephoscope("scheduler", "--target", "sim:linux-quota-150", "--seed", 2, "--json")
    assert judged.code == 0, judged.err
    (verdict,) = judged.json()["scheduler"]["targets"]
    assert verdict["word"] == "cap per machine"


def test_an_unfinished_simulation_goes_on_with_the_chance_of_its_rounds(
    nephoscope: Run, tmp_path: Path
) -> None:
    """Six rounds at once, and six of which one was simulated again: the same samples."""
    plan = tmp_path / "queue.yaml"
    plan.write_text(
        "version: 1\nname: queue\nseed: 9\nwarmup: 0\nrepeat: {min: 6, max: 6}\n"
        "targets: [{name: model, kind: sim}]\n"
        "benchmarks: [{benchmark: sim.queue, params: {requests: 3000}}]\n"
    )
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert nephoscope("run", plan, "--store", whole).code == 0
    assert nephoscope("run", plan, "--store", parts).code == 0
    (run,) = Store(parts).runs()
    # As a kill leaves it: the run is told as unfinished.
    unmerge(run).update(state="running")
    sorted(run.trials_path.iterdir())[3].unlink()
    assert nephoscope("run", plan, "--store", parts).code == 0
    assert len(list((parts / "runs").iterdir())) == 1
    assert sorted(samples(nephoscope, whole)) == sorted(samples(nephoscope, parts))


def test_without_a_scenario_the_names_are_listed(nephoscope: Run) -> None:
    done = nephoscope("simulate", "selection")
    assert done.code == 0
    assert "zhuang-2012" in done.out
    assert max(map(len, done.out.splitlines())) < 80
    listed = nephoscope("simulate", "selection", "--json").json()["scenarios"]
    assert listed["zhuang-2012"]["instances"] == 100


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("simulate", "selection", "zhuang"), "There is no scenario 'zhuang'"),
        (("simulate", "selection", "none.yaml"), "there is no such file"),
        (("simulate", "selection", "zhuang-2012", "--set", "hours=-1"), "--set hours=-1: hours"),
        (("simulate", "geo", "facebook-1", "--set", "sites.DC1.instances=0"), "instances"),
        (
            ("simulate", "geo", "facebook-1", "--set", "user_bases.UB1.zone=Mars/Phobos"),
            "Mars/Phobos",
        ),
        (("simulate", "scheduler", "linux-quota-150", "--set", "polcy=credit"), "did you mean"),
        (("bench", "cpu.gaps", "--target", "sim"), "needs a simulated machine"),
        (("bench", "cpu.gaps", "--target", "sim:nowhere"), "There is no scenario 'nowhere'"),
        (("bench", "sim.queue", "--set", "servers=0"), "servers must be a whole number from 1"),
        (("bench", "cpu.pi", "--target", "sim"), "does not answer cpu.pi"),
        (("survey", "--quick", "--target", "sim"), "does not answer"),
    ],
)
def test_bad_input_is_one_sentence(nephoscope: Run, words: tuple[str, ...], sentence: str) -> None:
    done = nephoscope(*words)
    assert done.code == 2, done.err
    assert sentence in done.sentence


def test_a_simulation_on_a_machine_is_refused(nephoscope: Run, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("version: 1\nname: odd\nbenchmarks: [{benchmark: sim.queue}]\n")
    done = nephoscope("run", plan)
    assert done.code == 2
    assert "plan.yaml:3:" in done.sentence
    assert "'local' is a machine" in done.sentence


def test_a_scenario_may_stand_in_a_plan(nephoscope: Run, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    text = (
        "version: 1\nname: mine\nwarmup: 0\nrepeat: {min: 2, max: 2}\n"
        "targets: [{name: model, kind: sim}]\n"
        "benchmarks:\n"
        "  - benchmark: sim.selection\n"
        "    params: {scenario: two-types}\n"
        "  - benchmark: sim.selection\n"
        "    params:\n"
        "      scenario:\n"
        "        version: 1\n"
        "        types: {a: {share: 1, speed: 1}}\n"
        "        instances: 2\n"
        "        hours: 10\n"
        "        price_usd_per_h: 1\n"
    )
    plan.write_text(text)
    done = nephoscope("run", plan, "--json")
    assert done.code == 0, done.err
    plan.write_text(text.replace("hours: 10", "ours: 10"))
    wrong = nephoscope("run", plan)
    assert wrong.code == 2
    assert "plan.yaml:15:9: unknown field `ours` (did you mean 'hours'?)" in wrong.sentence


def test_a_simulator_that_is_missing_is_told(nephoscope: Run) -> None:
    done = nephoscope("bench", "sim.queue", NEPHOSCOPE_SIM="/nowhere/nephoscope-sim")
    assert done.code == 4
    assert "there is no such file" in done.sentence
