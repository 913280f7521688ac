"""A census of a cloud whose machines are planted: all of it in this process but the benchmark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import schemas

from features.cloud.toy import MIX, PlantedCloud
from nephoscope.command_line import main
from nephoscope.features.census.command import of_runs
from nephoscope.measure import plans
from nephoscope.store import Store

ASK = ["cloud", "census", "toy", "--region", "east", "--image", "plain", "--type", "small"]

Census = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def census(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Census:
    """Runs the command; returns its exit code, its document, which keeps to its schema, and what it
    said besides."""

    def run(*words: str) -> tuple[int, Any, str]:
        code = main([*ASK, "--store", str(tmp_path / "store"), "--json", *words])
        out, err = capsys.readouterr()
        found = json.loads(out) if out else None
        if found is not None:
            schemas.validate(found, {**schemas.commands_schema(), "$ref": "#/$defs/cloud_census"})
        return code, found, err

    return run


def test_a_known_mix_is_found_by_the_command_and_in_the_stored_runs(
    made: Callable[..., PlantedCloud], census: Census, tmp_path: Path
) -> None:
    cloud = made(hosts=6)
    code, found, _ = census(
        "--zones", "east-a,east-b", "--count", "6", "--at-once", "8", "--money", "99"
    )
    assert code == 0
    assert (found["planned"], found["measured"], len(cloud.made)) == (12, 12, 12)
    assert (cloud.all(), cloud.most) == ([], 8)
    assert len(found["runs"]) == 2
    (kind,) = found["census"]["kinds"]
    planted = cloud.models()
    for share in kind["models"]:
        assert share["count"] == planted.count(share["model"])
        assert share["share"]["low"] <= MIX[share["model"]] <= share["share"]["high"]
    assert {zone["name"]: zone["machines"] for zone in kind["zones"]} == {
        "east-a": 6,
        "east-b": 6,
    }
    (hints,) = found["hosts"]
    hosts = {one.host for one in cloud.made}
    assert (hints["machines"], hints["hinted"], hints["hosts"]) == (12, 12, len(hosts))
    named = [len(one["machines"]) for one in hints["shared"] if "provider" in one["hint"]]
    assert sum(named) - len(named) == 12 - len(hosts)
    # Launches of both zones, in segments that add up to the whole.
    launches = {one["name"]: one for one in found["launches"]}
    assert set(launches) == {"small in east-a", "small in east-b"}
    for one in launches.values():
        assert one["marks"]["reachable"]["n"] == 6
        parts = sum(segment["value"] for segment in one["segments"].values())
        assert parts == pytest.approx(one["marks"]["reachable"]["value"], rel=1e-6)
    store = Store(tmp_path / "store")
    stored = of_runs(store.runs(), store, 0.95)
    assert stored.machines == 12
    assert "possibly dependent" in " ".join(stored.flags)


def test_a_quota_makes_batches_smaller_and_none_of_the_machines_is_lost(
    made: Callable[..., PlantedCloud], census: Census
) -> None:
    cloud = made(quota=2)
    code, found, _ = census("--count", "5", "--money", "99")
    assert (code, found["measured"], found["stopped"], cloud.most) == (0, 5, "", 2)
    assert len(found["runs"]) == 3
    assert cloud.all() == []


def test_a_quota_that_is_used_up_ends_the_census_with_what_it_has(
    made: Callable[..., PlantedCloud], census: Census
) -> None:
    cloud = made(quota=2)
    measured, cut = plans.census, []

    def used_up(*given: Any, **named: Any) -> Any:
        cut.append(1)
        cloud._quota = 2 if len(cut) == 1 else 0
        return measured(*given, **named)

    plans.census = used_up  # type: ignore[assignment]
    try:
        code, found, said = census("--count", "3", "--money", "99")
    finally:
        plans.census = measured  # type: ignore[assignment]
    assert code == 3
    assert (found["measured"], found["planned"]) == (2, 3)
    assert found["stopped"] == "The cloud grants no more: toy: the quota of 0 is reached."
    assert "2 of 3 planned machines were measured. The cloud grants no more" in said
    # The same command goes on with the one that is missing.
    cloud._quota = 9
    code, again, said = census("--count", "3", "--money", "99")
    assert (code, again["measured"], len(cloud.made)) == (0, 3, 3)
    assert (again["name"], len(again["runs"])) == (found["name"], 2)
    assert "goes on: 2 of 3 machines are measured" in said
    # Complete: the same command is a new census.
    assert census("--count", "3", "--money", "99")[1]["name"] != found["name"]


def test_a_machine_that_fails_is_replaced_once_and_named(
    made: Callable[..., PlantedCloud], census: Census
) -> None:
    cloud = made()
    cloud.silent = {1}
    code, found, _ = census("--count", "2", "--at-once", "1", "--money", "99")
    assert (code, found["measured"], len(cloud.made)) == (0, 2, 3)
    (problem,) = found["problems"]
    assert cloud.made[0].id in problem
    cloud.silent = {4, 5}
    code, found, said = census("--count", "2", "--at-once", "1", "--money", "99", "--fresh")
    assert (code, found["measured"], len(cloud.made)) == (3, 1, 6)
    assert "1 of 2 planned machines were measured." in said
    assert cloud.all() == []


def test_waves_are_rented_one_after_the_other(
    made: Callable[..., PlantedCloud], census: Census
) -> None:
    cloud = made()
    code, found, said = census("--count", "1", "--every", "1s", "--for", "2s", "--money", "99")
    assert (code, found["waves"], found["waves_begun"], found["measured"]) == (0, 2, 2, 2)
    assert len(cloud.made) == 2
    assert "Wave 2 of 2" in said or "Report" in said


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--count", "1", "--type", "tiny"], 2, "toy in east has no type 'tiny'. It has: small"),
        (["--count", "1", "--zones", "east-z"], 2, "toy in east has no zone 'east-z'"),
        (["--count", "1", "--zones", "east-a,east-a"], 2, "--zones names something twice"),
        (["--count", "0"], 2, "'--count'"),
        (["--count", "1", "--every", "1h"], 2, "--every and --for need each other."),
        (["--count", "1"], 2, "no spending limit is set. Add --money"),
        (["--count", "5", "--money", "0.01"], 2, "more than the limit of 0.01"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_sentence_and_rents_nothing(
    made: Callable[..., PlantedCloud], census: Census, words: list[str], code: int, sentence: str
) -> None:
    cloud = made()
    money = [] if "--money" in words or words == ["--count", "1"] else ["--money", "99"]
    got, found, said = census(*words, *money)
    assert (got, found) == (code, None)
    assert sentence in said
    assert "Traceback" not in said
    assert cloud.made == []


def test_a_census_without_any_machine_says_why(
    made: Callable[..., PlantedCloud], census: Census
) -> None:
    cloud = made()
    cloud.silent = {1, 2}
    code, found, said = census("--count", "1", "--money", "99")
    assert (code, found) == (3, None)
    assert "The census has no machine that was measured" in said
    assert "it failed to start" in said
    assert cloud.all() == []


def test_money_that_is_spent_ends_the_census_with_what_it_has(
    made: Callable[..., PlantedCloud], census: Census
) -> None:
    made()
    # One machine of 1 USD an hour, quoted for 20 min 25 s; the second would exceed what is left.
    code, found, said = census("--count", "2", "--at-once", "1", "--money", "0.3404")
    assert (code, found["measured"]) == (3, 1)
    assert "more than the limit of" in found["stopped"]
    assert "1 of 2 planned machines were measured." in said
