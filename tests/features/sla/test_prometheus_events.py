"""Range queries of Prometheus as events, and JSON that is something else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.features.sla.made import JUNE_S, agreement, refused, run

Capture = pytest.CaptureFixture[str]

LOSS = "measure: loss, at_most: 10%, basis: census"


def response(*series: tuple[dict[str, str], list[str]], kind: str = "matrix") -> dict[str, Any]:
    result = [
        {
            "metric": {"__name__": "probe_success", **labels},
            "values": [[JUNE_S + 60 * at, value] for at, value in enumerate(values)],
        }
        for labels, values in series
    ]
    return {"status": "success", "data": {"resultType": kind, "result": result}}


def judged(folder: Path, capsys: Capture, document: Any) -> Any:
    (folder / "e.json").write_text(json.dumps(document))
    terms = agreement(folder / "a.yaml", LOSS)
    return run(capsys, "verdict", terms, folder / "e.json", "--now", "2023-06-02")


def test_series_are_services_and_stale_points_are_unknown(tmp_path: Path, capsys: Capture) -> None:
    shop = ({"instance": "https://shop/"}, ["1", "0", "NaN", "1"])
    mail = ({"instance": "https://mail/"}, ["1", "1"])
    answer = judged(tmp_path, capsys, response(shop, mail))
    assert answer["services"] == ["https://mail/", "https://shop/"]
    counts = [
        (o["good"], o["bad"], o["unknown"]) for p in answer["periods"] for o in p["objectives"]
    ]
    assert counts == [(2, 0, 0), (2, 1, 1)]


def test_several_series_of_an_instance_are_observers(tmp_path: Path, capsys: Capture) -> None:
    series = [({"instance": "shop", "prober": name}, ["1", "1"]) for name in ("berlin", "oslo")]
    answer = judged(tmp_path, capsys, response(*series))
    assert answer["services"] == ["shop"]
    assert answer["observers"] == ["prober=berlin", "prober=oslo"]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (response(({}, ["0.5"])), "the value 0.5 is neither 1 nor 0"),
        (response(({}, ["one"])), "is no point"),
        (response(kind="vector"), "the response to an instant query (vector)"),
        ({"status": "error", "error": "query timed out"}, "an error: query timed out"),
        ([{"time": 1, "ok": 1}], "this is JSON, not the response of a range query"),
        ({"Items": [], "BillingCurrency": "USD"}, "this is a response of Azure Retail Prices"),
    ],
)
def test_json_that_is_no_range_of_successes(
    document: Any, expected: str, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "e.json").write_text(json.dumps(document))
    terms = agreement(tmp_path / "a.yaml", LOSS)
    assert expected in refused(capsys, "verdict", terms, tmp_path / "e.json")


def test_words_of_uptime_tools(tmp_path: Path, capsys: Capture) -> None:
    words = ["UP", "Down", "true", "FALSE", "yes", "unknown", ""]
    rows = "".join(f"{JUNE_S + at},{word}\n" for at, word in enumerate(words))
    (tmp_path / "e.csv").write_text(f"time,ok\n{rows}")
    terms = agreement(tmp_path / "a.yaml", LOSS)
    answer = run(capsys, "verdict", terms, tmp_path / "e.csv", "--now", "2023-06-02")
    (one,) = answer["periods"][0]["objectives"]
    assert (one["good"], one["bad"], one["unknown"]) == (3, 2, 2)
