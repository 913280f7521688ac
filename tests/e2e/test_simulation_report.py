"""A simulated deployment from its name to the picture: what the report and `--json` say of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests import schemas
from tests.e2e.conftest import Run

WORDS = ("simulate", "geo", "twitter-2008-as-printed-two", "--set", "duration_h=3")


def test_a_deployment_is_told_and_drawn(nephoscope: Run, tmp_path: Path) -> None:
    done = nephoscope(*WORDS, "--replications", 6, "--seed", 1, "--store", tmp_path, "--json")
    assert done.code == 0, done.err
    document = done.json()
    schemas.validate(document, schemas.result_schema())
    (one,) = document["simulation"]["deployments"]
    _has_places_means_and_hours(one)
    headlines = [line for line in document["metrics"] if line["headline"]]
    assert "response_time_mean_ns" in {line["metric"] for line in headlines}
    assert not any({"hour", "user_base", "part"} & line["factors"].keys() for line in headlines)
    assert "microcode" not in json.dumps(document["findings"])
    page = Path(document["run"]["report"]).read_text(encoding="utf-8")
    assert "Response time and cost" in page
    assert "is simulated (nephoscope-sim" in page
    assert "Environment" not in page


def _has_places_means_and_hours(one: dict[str, Any]) -> None:
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
    (percentile,) = [
        region["figures"]["response_time_p50_ns"]
        for region in one["regions"]
        if region["name"] == "asia"
    ]
    assert 300e6 < percentile["value"] < 320e6
    curves = [curve for curve in one["curves"] if curve["metric"] == "requests"]
    assert {curve["of"] for curve in curves} == {"us", "eu"}
