"""A study's census beside that of rented machines, and what may be said of both."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Better
from nephoscope.features.census import command as censuses
from nephoscope.features.census.records import MachineCount, ModelValues, Observations
from nephoscope.features.census.result import build
from nephoscope.features.cloud.study_census import section, shares
from nephoscope.features.cloud.study_records import StudyCensusResult
from nephoscope.features.studies import catalogue
from nephoscope.features.studies.census_request import StudyCensusOptions, is_asked_for

STUDY = catalogue.load("zhuang-2012")
RENTED = {"m": {"provider": "ec2", "region": "us-east-1"}}


def compared(type_: str, models: dict[str, int], fast: float = 1.3) -> StudyCensusResult:
    """Machines of a type, of which those of the first model are so much faster."""
    counts = tuple(MachineCount(type_, model, number) for model, number in models.items())
    values = {
        model: {
            f"{model}-{machine}": {"run": [100 + machine + draw for draw in range(3)]}
            for machine in range(number)
        }
        for model, number in models.items()
    }
    first = next(iter(models))
    values[first] = {
        machine: {run: [fast * value for value in trial] for run, trial in runs.items()}
        for machine, runs in values[first].items()
    }
    line = ModelValues(type_, "cpu.pi", "pi_digits_per_s", {}, Better.HIGHER, values)
    measured = build(Observations(counts, (line,), runs=1))
    run: Any = SimpleNamespace(
        id="20261127-101500-cloud-census-0a1b",
        started_s=1_795_000_000.0,
        manifest=SimpleNamespace(rented=RENTED),
    )
    return shares(STUDY, censuses.of_study(STUDY.name, 0.95), measured, [run], None)


def test_shares_stand_beside_the_published_ones_with_intervals() -> None:
    found = compared("t3.micro", {"EPYC": 8, "Xeon": 4})
    published = {
        row.model: (round(row.share.value, 2), row.share.n)
        for row in found.shares
        if row.source == "published"
    }
    assert published == {
        "E5430": (0.17, 100),
        "E5507": (0.40, 100),
        "E5645": (0.42, 100),
        "2218HE": (0.01, 100),
    }
    (most,) = (row.share for row in found.shares if row.model == "EPYC")
    assert most.low is not None
    assert most.high is not None
    assert most.low < 8 / 12 < most.high
    assert most.n == 12


def test_statements_are_reproduced_in_kind_and_never_in_number() -> None:
    several, speed = compared("t3.micro", {"EPYC": 8, "Xeon": 8}).statements
    assert (several.mark, speed.mark) == ("reproduced in kind", "reproduced in kind")
    assert "4 in 100 machines of m1.large" in several.published
    assert speed.measured.startswith("1.3 times, ")


def test_one_model_contradicts_nothing() -> None:
    several, speed = compared("t3.micro", {"EPYC": 10}).statements
    assert (several.mark, speed.mark) == ("not comparable", "not comparable")
    assert "up to" in several.reason


def test_models_that_are_equally_fast_contradict() -> None:
    _, speed = compared("t3.micro", {"EPYC": 20, "Xeon": 20}, fast=1.0).statements
    assert speed.mark in ("contradicted", "not comparable")


def test_a_type_with_a_published_namesake_stands_beside_it() -> None:
    found = compared("c1.medium", {"Xeon": 6})
    assert {row.instance_type for row in found.shares} == {"c1.medium"}


def test_the_ground_says_that_it_is_no_repetition() -> None:
    found = compared("t3.micro", {"EPYC": 3})
    assert found.ground.startswith("in kind: ")
    assert "No share of it can be reproduced or contradicted" in found.ground
    assert "ec2 in us-east-1" in found.ground
    assert "m1.large" in str(section(STUDY, found))


def test_runs_of_own_machines_are_refused() -> None:
    run: Any = SimpleNamespace(id="r", started_s=0.0, manifest=SimpleNamespace(rented={}))
    published = censuses.of_study(STUDY.name, 0.95)
    with pytest.raises(UsageError, match="was rented"):
        shares(STUDY, published, published, [run], None)


EMPTY = StudyCensusOptions(
    "", "", "", "", (), (), "", None, None, "USD", (), False
)  # fmt: skip
WHOLE = replace(EMPTY, provider="ec2", region="r", types=("t",), image="i", count=3)


@pytest.mark.parametrize(
    ("wanted", "parts", "scale", "sentence"),
    [
        (replace(EMPTY, region="r"), [], "small", "--region is about rented machines"),
        (replace(EMPTY, count=3), [], "small", "--count is about rented machines"),
        (replace(EMPTY, provider="ec2"), [], "small", "needs --region and --type and --image"),
        (replace(WHOLE, image=""), [], "small", "needs --image"),
        (replace(WHOLE, census_runs=("r",)), [], "small", "--from takes a stored census"),
        (replace(EMPTY, census_runs=("r",), money=1.0), [], "small", "--money rents machines"),
        (WHOLE, ["share"], "small", "census alone"),
        (WHOLE, [], "paper", "census alone"),
    ],
)
def test_options_that_do_not_go_together_are_one_sentence(
    wanted: StudyCensusOptions, parts: list[str], scale: str, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        is_asked_for(wanted, parts, scale)


def test_options_that_ask_for_a_census() -> None:
    assert is_asked_for(WHOLE, ["hardware"], "small")
    assert is_asked_for(replace(EMPTY, census_runs=("r",)), [], "small")
    assert not is_asked_for(EMPTY, ["share"], "paper")
