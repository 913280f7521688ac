"""A simulated deployment from its name to the picture: what the report and `--json` say of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.e2e.conftest import Run

from nephoscope import results


@pytest.fixture(scope="module")
def deployed(nephoscope: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    store = tmp_path_factory.mktemp("store")
    words = ("simulate", "geo", "twitter-2008-as-printed-two", "--set", "duration_h=3")
    done = nephoscope(*words, "--replications", 6, "--seed", 1, "--store", store, "--json")
    assert done.code == 0, done.err
    document: dict[str, Any] = done.json()
    return document


def test_the_deployment_stands_in_the_document(deployed: dict[str, Any]) -> None:
    jsonschema.validate(deployed, results.result_schema())
    (one,) = deployed["simulation"]["deployments"]
    assert one["objective_ns"] == 500e6
    assert one["compat"] == "cloudanalyst"
    places = {(place["kind"], place["name"]) for place in one["places"]}
    assert {("site", "us"), ("site", "eu"), ("user_base", "asia")} <= places
    assert all(place["latitude"] is not None for place in one["places"])
    means = {
        region["name"]: region["figures"]["response_time_mean_ns"] for region in one["regions"]
    }
    # Asia is 150 ms from Europe, there and back, and has no site: at least 300 ms.
    assert 300e6 < means["asia"]["value"] < 320e6
    assert means["asia"]["n"] == 6
    hours = {
        curve["of"]: curve["hours"] for curve in one["curves"] if curve["metric"] == "requests"
    }
    assert set(hours) == {"us", "eu"}


def test_parts_are_no_headlines(deployed: dict[str, Any]) -> None:
    headlines = [one for one in deployed["metrics"] if one["headline"]]
    assert {"response_time_mean_ns"} <= {one["metric"] for one in headlines}
    assert not any({"hour", "user_base", "part"} & one["factors"].keys() for one in headlines)


def test_the_page_has_the_map_and_speaks_of_no_machine(deployed: dict[str, Any]) -> None:
    text = Path(deployed["run"]["report"]).read_text(encoding="utf-8")
    assert "How users are served" in text
    assert "is simulated (nephoscope-sim" in text
    assert "What this machine is" not in text
    assert "microcode" not in json.dumps(deployed["findings"])
