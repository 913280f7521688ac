"""Utility of offers: test vectors, ranks under uncertainty, price functions, what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.features.cost.made import document, refused

from nephoscope.features.pricing.offers import OfferFile
from nephoscope.features.pricing.utility import analyse

# Logistic curves of slope 20, 0.01 and 4: utility 0.9 is ln 9 / slope from the middle.
NINES = 3 + math.log(9) / 4
PARAMETERS: dict[str, dict[str, Any]] = {
    "response_s": {"half": 0.3, "good": 0.3 - math.log(9) / 20, "weight": 0.5},
    "throughput_per_s": {"half": 800, "good": 800 + math.log(9) / 0.01, "weight": 0.3},
    "availability": {"half": "99.9%", "good": 1 - 10**-NINES, "weight": 0.2, "scale": "nines"},
}


def offer(price: Any, response: Any, throughput: Any, availability: Any) -> dict[str, Any]:
    values = (response, throughput, availability)
    return {"price": price, "values": dict(zip(PARAMETERS, values, strict=True))}


OFFERS = {
    "P1": offer(300, 0.20, 900, "99.95%"),
    "P2": offer(220, 0.45, 1400, "99.9%"),
    "P3": offer(520, 0.12, 1000, "99.99%"),
}


def written(folder: Path, **changes: Any) -> Path:
    file = folder / "offers.yaml"
    file.write_text(json.dumps({"parameters": PARAMETERS, "offers": OFFERS} | changes))
    return file


def by_name(result: dict[str, Any], key: str) -> list[Any]:
    named = {one["offer"]: one[key] for one in result["offers"]}
    return [
        named[name]["value"] if isinstance(named[name], dict) else named[name] for name in OFFERS
    ]


def test_utilities_of_three_offers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = document(capsys, "cost", "utility", written(tmp_path, budget=400))
    assert by_name(result, "utility") == pytest.approx([0.8136, 0.4230, 0.9473], abs=1e-4)
    assert by_name(result, "product") == pytest.approx([0.8107, 0.1894, 0.9463], abs=1e-4)
    assert by_name(result, "per_100") == pytest.approx([0.2712, 0.1923, 0.1822], abs=1e-4)
    assert result["recommended"] == "P1"
    assert by_name(result, "excluded")[2] == "price above the budget of 400 USD"
    assert by_name(result, "rank_1_probability") == [1.0, 0.0, 0.0]
    assert by_name(result, "is_pareto") == [True, True, False]


def test_topsis_is_a_near_tie(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = dict(zip(PARAMETERS, (0.5, 0.25, 0.25), strict=True))
    parameters = {name: one | {"weight": weights[name]} for name, one in PARAMETERS.items()}
    result = document(
        capsys, "cost", "utility", written(tmp_path, parameters=parameters, price_weight=0.2)
    )
    assert by_name(result, "topsis") == pytest.approx([0.7103, 0.2913, 0.7178], abs=1e-4)


def test_weights_from_comparisons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix = [[1, 3, 5], [1 / 3, 1, 3], [1 / 5, 1 / 3, 1]]
    result = document(capsys, "cost", "utility", written(tmp_path, comparisons=matrix))
    weights = list(result["weights"].values())
    assert weights == pytest.approx([0.63699, 0.25828, 0.10473], rel=1e-4)
    assert result["consistency_ratio"] == pytest.approx(0.0332, abs=1e-4)
    # lambda = 3 + 2 x CR x 0.58
    assert 3 + 2 * 0.58 * result["consistency_ratio"] == pytest.approx(3.03851, rel=1e-5)
    circular = [[1, 9, 1 / 9], [1 / 9, 1, 9], [9, 1 / 9, 1]]
    assert "contradict" in refused(
        capsys, "cost", "utility", written(tmp_path, comparisons=circular)
    )


def provider() -> dict[str, Any]:
    kinds = {
        "response_s": {"kind": "response_time", "alpha": 1, "beta": 2, "levels": [0.05, 1]},
        "throughput_per_s": {"kind": "throughput", "alpha": 0.01, "levels": [0, 2000]},
        "availability": {"kind": "availability", "beta": 5, "levels": ["0.9", "0.9999"]},
    }
    kinds["availability"]["levels"] = [0.9, 0.9999]
    return {name: one | {"provider": kinds[name]} for name, one in PARAMETERS.items()}


def test_prices_by_the_provider_s_functions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offers = {"one": offer(1, 0.5, 1, 0.99)}
    result = document(
        capsys, "cost", "utility", written(tmp_path, parameters=provider(), offers=offers)
    )
    (one,) = result["offers"]
    assert one["provider_price"] == pytest.approx(0.36788 + 0.01 + 51.1578, rel=1e-5)


def test_the_best_level_within_the_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, parameters=provider(), budget=20)
    level = document(capsys, "cost", "utility", file)["best_level"]
    assert level["price"] <= 20 * 1.0001
    # No level of a coarse grid within the budget is more useful.
    values = OfferFile.model_validate(json.loads(file.read_text()))
    from nephoscope.features.pricing.utility import utility_of

    tables = []
    for parameter in values.parameters.values():
        assert parameter.provider is not None
        assert parameter.weight is not None
        levels = parameter.levels(60)
        gain = parameter.weight * utility_of(levels, parameter)
        tables.append((gain, parameter.provider.price(levels)))
    gains = tables[0][0][:, None, None] + tables[1][0][:, None] + tables[2][0]
    costs = tables[0][1][:, None, None] + tables[1][1][:, None] + tables[2][1]
    best = float(gains[costs <= 20].max())
    assert level["utility"] >= best - 2e-3
    assert level["utility"] < best + 0.02


def test_the_rank_is_a_probability_where_metrics_are_uncertain() -> None:
    near = {"value": 0.2, "low": 0.15, "high": 0.27, "n": 10}
    offers = {
        "a": offer(300, near, 900, 0.9995),
        "b": offer(300, near, 900, 0.9995),
        "c": offer(300, 0.8, 900, 0.9995),
    }
    file = OfferFile.model_validate({"parameters": PARAMETERS, "offers": offers})
    found = {one.offer: one for one in analyse(file).offers}
    # Two offers that are alike are best with the same probability; Monte Carlo of 20,000 draws.
    assert found["a"].rank_1_probability == pytest.approx(0.5, abs=0.02)
    assert sum(one.rank_1_probability for one in found.values()) == pytest.approx(1)
    assert found["c"].rank_1_probability == 0
    low, high = found["a"].utility.low, found["a"].utility.high
    assert low is not None
    assert high is not None
    assert low < found["a"].utility.value < high


def test_uncertain_weights_make_the_rank_uncertain() -> None:
    values = {"parameters": PARAMETERS, "offers": OFFERS, "weight_certainty": 5}
    p3 = next(one for one in analyse(OfferFile.model_validate(values)).offers if one.offer == "P3")
    assert 0.9 < p3.rank_1_probability <= 1
    assert p3.utility.low is not None
    assert np.isfinite(p3.utility.low)


def changed(**changes: Any) -> dict[str, Any]:
    return {**PARAMETERS, "availability": {**PARAMETERS["availability"], **changes}}


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"parameters": changed(weight=0.3)}, "sum to 1.1, not to 1"),
        ({"parameters": changed(weight=None)}, "the weight is missing"),
        ({"parameters": changed(good=0.999)}, "half and good are equal"),
        ({"offers": {"P1": offer(0, 1, 1, 0.9)}}, "greater than 0"),
        ({"offers": {"P1": offer(1, -1, 1, 0.9)}}, "greater than 0"),
        ({"offers": {"P1": offer(1, 1, 1, 1.0)}}, "not between 0.1 and below 1"),
        ({"offers": {"P1": {"price": 1, "values": {"response_s": 1}}}}, "differ in"),
        ({"offers": {"P1": {**OFFERS["P1"], "currency": "EUR"}}}, "a price in EUR"),
        ({"comparisons": [[1, 2], [0.5, 1]]}, "no square of 3"),
        ({"comparisons": [[1, 2, 3], [2, 1, 3], [3, 3, 1]]}, "not reciprocal"),
        ({"budget": -1}, "greater than 0"),
    ],
)
def test_what_cannot_be_compared(
    changes: dict[str, Any], part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = refused(capsys, "cost", "utility", written(tmp_path, **changes))
    assert part in sentence
    assert str(tmp_path) in sentence


def test_weights_are_divided_by_their_sum_if_that_is_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    double = {name: one | {"weight": 2 * one["weight"]} for name, one in PARAMETERS.items()}
    result = document(
        capsys, "cost", "utility", written(tmp_path, parameters=double, normalise=True)
    )
    assert by_name(result, "utility")[0] == pytest.approx(0.8136, abs=1e-4)


def test_no_offer_is_recommended_where_all_are_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = document(capsys, "cost", "utility", written(tmp_path, budget=1))
    assert result["recommended"] == ""
    assert by_name(result, "rank_1_probability") == [0, 0, 0]


def test_a_page_has_a_curve_of_each_parameter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "utility.html"
    document(capsys, "cost", "utility", written(tmp_path), "-o", page)
    text = page.read_text()
    assert all(f"Utility by {name}" in text for name in PARAMETERS)
