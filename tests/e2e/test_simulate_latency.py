"""`simulate geo --latency RUN`: round trips of a stored run become a scenario's latencies."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import Run
from tests.results.made import NULL_PLAN, make_run

from nephoscope.core.model import Sample, Setting
from nephoscope.store import Store, StoredRun, query

MS = 1e6
PAIR = """
version: 1
name: ways
seed: 1
warmup: 0
repeat: {min: 6, max: 6}
accept: [late_sends]   # a busy machine; what arrives is asked here, not what it is worth
targets: [{name: berlin, kind: local}, {name: frankfurt, kind: local}]
benchmarks:
  - {benchmark: net.rtt, on: berlin, peer: frankfurt, params: {rate_per_s: 200, duration_ns: 300ms}}
"""
SCENARIO = """\
version: 1
name: ways
duration_h: 1
user_bases:
  berlin: {lat: 52.5, lon: 13.4, users: {peak: 100, off_peak: 100}, requests_per_user_h: 60}
sites:
  frankfurt: {lat: 50.1, lon: 8.7, instances: 2}
"""
FURTHER = "  osaka: {lat: 34.7, lon: 135.5, instances: 2}\n"


def round_trips(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
    """40 ms nine times in ten, 80 ms else: 44 ms on average."""
    return [Sample("rtt_ns", 40 * MS, 900), Sample("rtt_ns", 80 * MS, 100)]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A store whose only run has those round trips."""
    make_run(tmp_path / "store", PAIR, round_trips)
    return tmp_path / "store"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    return path


def simulated(document: dict[str, Any]) -> dict[tuple[str, str], float]:
    return {
        (one["metric"], str(one["factors"].get("site", ""))): one["estimate"]["value"]
        for one in document["metrics"]
        if "hour" not in one["factors"] and one["factors"].keys() <= {"site"}
    }


def scenario_of(document: dict[str, Any]) -> dict[str, Any]:
    """What the simulator was given."""
    manifest = json.loads((Path(document["run"]["path"]) / "manifest.json").read_text())
    found = json.loads(manifest["plan"]["benchmarks"][0]["params"]["scenario"])
    assert isinstance(found, dict)
    return found


def test_stored_round_trips_are_what_users_wait(
    nephoscope: Run, stored: Path, scenario: Path
) -> None:
    words = ("simulate", "geo", scenario, "--latency", "latest", "--replications", 6, "--seed", 2)
    done = nephoscope(*words, "--store", stored, "--json")
    assert done.code == 0, done.err
    given = scenario_of(done.json())["latency"]["measured"]
    assert given == {"berlin": {"frankfurt": [40.0] * 180 + [80.0] * 20}}
    found = simulated(done.json())
    on_the_way = found["response_time_mean_ns", ""] - found["processing_time_mean_ns", "frankfurt"]
    # Either half is a draw of its own: 9 ms of deviation over some 6,000 requests a replication.
    assert abs(on_the_way / MS - 44) < 0.6


def test_a_run_on_loopback_arrives_in_the_scenario(
    nephoscope: Run, tmp_path: Path, scenario: Path
) -> None:
    plan, store = tmp_path / "ways.yaml", tmp_path / "store"
    plan.write_text(PAIR)
    measured = nephoscope("run", plan, "--store", store)
    assert measured.code == 0, measured.err
    seen = round_trips_of(Store(store).open("latest"))
    words = ("simulate", "geo", scenario, "--latency", "latest", "--replications", 2)
    done = nephoscope(*words, "--store", store, "--json")
    assert done.code == 0, done.err
    drawn = scenario_of(done.json())["latency"]["measured"]["berlin"]["frankfurt"]
    assert len(drawn) == 200
    # The draw at the middle of the first part, of the 100th, and of the last.
    for draw, share in ((0, 0.0025), (99, 0.4975), (199, 0.9975)):
        exact = seen[math.ceil(share * len(seen)) - 1]
        # Told in milliseconds with six decimals: to the nanosecond.
        assert drawn[draw] == pytest.approx(exact / MS, abs=1e-6)


USERS = {"chicago": 6.0, "mit": 28.0, "ucla": 56.0, "italy": 120.0, "japan": 170.0}
"""Round trips from each user to the cloud in Illinois, in ms: twice the plan's delays."""


def test_users_of_a_study_wait_for_the_round_trips_of_its_run(
    nephoscope: Run, tmp_path: Path
) -> None:
    def probes(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
        if setting.benchmark == "net.rtt":
            return [Sample("rtt_ns", USERS.get(target, 0.1) * MS, 40)]
        return [Sample("goodput_bytes_per_s", 1e6)]

    plan = Path(__file__).resolve().parents[2] / "studies" / "khurshid-2009" / "plan-users.yaml"
    make_run(tmp_path / "store", plan.read_text(encoding="utf-8"), probes)
    bases = "\n".join(
        f"  {user}: {{lat: 0, lon: 0, users: {{peak: 10, off_peak: 10}}, requests_per_user_h: 60}}"
        for user in USERS
    )
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        f"version: 1\nname: users\nduration_h: 1\nuser_bases:\n{bases}\n"
        "sites:\n  illinois: {lat: 40.1, lon: -88.2, instances: 2}\n"
    )
    words = ("simulate", "geo", scenario, "--latency", "latest", "--replications", 2)
    done = nephoscope(*words, "--store", tmp_path / "store", "--json")
    assert done.code == 0, done.err
    measured = scenario_of(done.json())["latency"]["measured"]
    drawn = {user: set(measured[user]["illinois"]) for user in USERS}
    assert drawn == {user: {milliseconds} for user, milliseconds in USERS.items()}


def round_trips_of(run: StoredRun) -> list[float]:
    """Every one that counts, ascending, in nanoseconds."""
    found = [
        value
        for one in query.histograms(run)
        if one.metric == "rtt_ns"
        for value, count in zip(one.values, one.counts, strict=True)
        for _ in range(count)
    ]
    return sorted(found)


def test_a_pair_that_was_not_measured_is_told_and_the_others_are_simulated(
    nephoscope: Run, stored: Path, scenario: Path
) -> None:
    scenario.write_text(SCENARIO + FURTHER)
    words = ("simulate", "geo", scenario, "--latency", "latest", "--replications", 2)
    done = nephoscope(*words, "--store", stored, "--json")
    assert done.code == 0, done.err
    assert "no round-trip times between berlin and osaka; they are not connected" in done.err


@pytest.mark.parametrize(
    ("base", "says"),
    [
        ("tokyo", "no round-trip times between the user base 'tokyo' and any site"),
        ("berlin: {}\n  tokyo", "no round-trip times between the user base 'tokyo' and any site"),
    ],
)
def test_a_place_that_the_run_lacks_is_one_sentence(
    nephoscope: Run, stored: Path, scenario: Path, base: str, says: str
) -> None:
    scenario.write_text(SCENARIO.replace("berlin", base, 1))
    done = nephoscope("simulate", "geo", scenario, "--latency", "latest", "--store", stored)
    assert done.code == 2
    assert says in done.sentence
    assert "berlin and frankfurt" in done.sentence


def test_a_run_without_round_trips_is_one_sentence(
    nephoscope: Run, tmp_path: Path, scenario: Path
) -> None:
    make_run(tmp_path / "store", NULL_PLAN, lambda *_: [Sample("null_ns", 1.0)])
    words = ("simulate", "geo", scenario, "--latency", "latest", "--store", tmp_path / "store")
    done = nephoscope(*words)
    assert done.code == 2
    assert "has no round-trip times" in done.sentence
    assert "net.rtt" in done.sentence
    none = nephoscope("simulate", "geo", scenario, "--latency", "nowhere", *words[-2:])
    assert none.code == 2
    assert "There is no run 'nowhere'" in none.sentence
