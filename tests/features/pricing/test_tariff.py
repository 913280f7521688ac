"""The tariff by size and throughput: test vectors, properties, calibration, cheats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.features.cost.made import document, refused
from tests.features.network.made import PLAN, sampled
from tests.results.made import make_run

from nephoscope.features.pricing.tariff import Discount, harmonic_mean, phi


def tariff(folder: Path, classes: dict[str, Any] | None = None, **changes: Any) -> Path:
    one = {"contracted_mbit_per_s": 100, "throughput_mbit_per_s": [50], "gb_per_month": 100}
    values = {
        "unit": "GB",
        "tiers": [{"price_per_gb": 0.17}],
        "discount": {"exponent": 0.5, "minimum_ratio": 0.5},
        "classes": {"one": one} if classes is None else classes,
    }
    file = folder / "tariff.yaml"
    file.write_text(json.dumps(values | changes))
    return file


def test_bills_by_throughput(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    classes = {
        name: {"contracted_mbit_per_s": 100, "throughput_mbit_per_s": [value], "gb_per_month": 100}
        for name, value in {"half": 50, "slow": 20, "full": 100, "faster": 900}.items()
    }
    result = document(capsys, "cost", "tariff", tariff(tmp_path, classes))
    bills = {one["name"]: one for one in result["bills"]}
    paid = {name: one["by_throughput"]["value"] for name, one in bills.items()}
    wanted = {"half": 12.0208, "slow": 8.5, "full": 17.0, "faster": 17.0}
    assert paid == pytest.approx(wanted, rel=1e-4)
    assert result["ten_terabytes"] == pytest.approx([1700.0, 1740.8])
    # What the classes pay together is the revenue of the flat tariff.
    assert sum(one["calibrated"]["value"] for one in result["bills"]) == pytest.approx(68.0)
    assert result["revenue"] == pytest.approx(68.0)


def test_an_exponent_of_0_is_the_flat_tariff(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = document(capsys, "cost", "tariff", tariff(tmp_path, discount={"exponent": 0}))
    (bill,) = result["bills"]
    assert bill["calibrated"]["value"] == bill["flat"] == pytest.approx(17.0)
    assert {one["gain_ratio"] for one in result["cheats"]} == {0.0}


def test_the_calibration_has_an_interval_over_transfers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    near = {"contracted_mbit_per_s": 100, "throughput_mbit_per_s": [80, 90, 99], "gb_per_month": 50}
    far = {**near, "throughput_mbit_per_s": [30, 40, 60], "clients": 3}
    result = document(capsys, "cost", "tariff", tariff(tmp_path, {"near": near, "far": far}))
    factor = result["calibration"]
    assert 1 < factor["low"] < factor["value"] < factor["high"]
    far_bill = next(one for one in result["bills"] if one["name"] == "far")
    assert far_bill["throughput_mbit_per_s"]["value"] == pytest.approx(40.0)
    assert far_bill["change_ratio"]["value"] < 0
    assert "Traceback" not in capsys.readouterr().err


def test_who_gains_by_cheating(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = document(capsys, "cost", "tariff", tariff(tmp_path))
    gains: dict[str, list[float]] = {}
    for one in result["cheats"]:
        gains.setdefault(one["cheat"], []).append(one["gain_ratio"])
    due = 0.5**0.5
    agreed = 1 - 0.975**0.5
    assert gains["understate the throughput"] == pytest.approx(
        [1 - 0.5 / due, 0, agreed, agreed, agreed]
    )
    assert gains["receive slowly"] == pytest.approx([1 - 0.5 / due] * 3 + [0, 0])
    assert gains["overstate the throughput"][1] == pytest.approx(1 / due - 1)
    assert gains["send small objects"][-1] == 0
    # No rule leaves a cheat more than half of the tolerance, once transfers are checked.
    assert max(values[-1] for values in gains.values()) < 0.026


def test_the_throughputs_of_a_stored_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "store", PLAN, sampled, rounds=6)
    target = run.manifest.targets[0]["name"]
    one = {"contracted_mbit_per_s": 1000, "gb_per_month": 1}
    file = tariff(tmp_path, {target: one})
    assert "there are no throughputs" in refused(capsys, "cost", "tariff", file)
    words = ("cost", "tariff", file, "--run", run.id, "--store", tmp_path / "store")
    (bill,) = document(capsys, *words)["bills"]
    assert bill["throughput_mbit_per_s"]["n"] == 6


@given(
    st.floats(0.01, 1e5),
    st.floats(1, 1e4),
    st.just(0.0) | st.floats(0.01, 3),
    st.floats(0, 1),
)
def test_the_price_rises_with_throughput_and_is_bounded(
    throughput: float, contracted: float, exponent: float, minimum: float
) -> None:
    discount = Discount(exponent=exponent, minimum_ratio=minimum)
    low, high = phi(np.array([throughput, 1.5 * throughput]), contracted, discount)
    assert minimum - 1e-12 <= low <= high <= 1


def test_a_throughput_of_a_window_is_all_bytes_over_all_time() -> None:
    # Two transfers of 100 Mbit at 10 and 40 Mbit/s take 12.5 s.
    assert harmonic_mean(np.array([10.0, 40.0])) == pytest.approx(200 / 12.5)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        (
            {"tiers": [{"price_per_gb": 1, "to_gb": 10}, {"from_gb": 5, "price_per_gb": 1}]},
            "overlap",
        ),
        ({"tiers": []}, "is empty"),
        ({"unit": "TB"}, "unit"),
        ({"discount": {"exponent": -1}}, "greater than or equal to 0"),
        ({"discount": {"exponent": 1e-300}}, "changes no price"),
        ({"discount": {"minimum_ratio": 1.5}}, "less than or equal to 1"),
        ({"classes": {}}, "is empty"),
        ({"currency": "usd"}, "currency"),
        ({"version": 2}, "version"),
    ],
)
def test_a_tariff_that_cannot_be_used(
    changes: dict[str, Any], part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert part in refused(capsys, "cost", "tariff", tariff(tmp_path, **changes))


@pytest.mark.parametrize("values", [[], [0], [-3], ["fast"]])
def test_a_class_without_usable_throughputs(
    values: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = {"contracted_mbit_per_s": 1, "throughput_mbit_per_s": values, "gb_per_month": 1}
    assert "throughput_mbit_per_s" in refused(
        capsys, "cost", "tariff", tariff(tmp_path, {"a": one})
    )


def test_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "tariff.md"
    document(capsys, "cost", "tariff", tariff(tmp_path), "-o", page)
    assert "Gains of cheats" in page.read_text()
