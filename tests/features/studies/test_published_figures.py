"""Figures of the studies, with the interval that their own numbers allow."""

from __future__ import annotations

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.features.studies import catalogue
from nephoscope.features.studies.comparison.published import ReferenceFigure, compute_figure
from nephoscope.features.studies.definition.selectors import PublishedFigure

DELGADO = catalogue.load("delgado-2010")


def of(part: str, name: str) -> ReferenceFigure:
    mapping = next(one for one in DELGADO.part(part).comparisons if one.id == name)
    return compute_figure(DELGADO, mapping.published)


# Computed apart from this program: Fieller's interval with Satterthwaite's degrees of freedom.
@pytest.mark.parametrize(
    ("part", "name", "value", "low", "high", "n"),
    [
        ("isolation", "cpu-time", 1.02238, 1.01755, 1.02722, 100),
        ("shaping", "rtt-send-40", 1.23364, 1.22578, 1.24151, 3),
        ("shaping", "rtt-send-45", 1.32962, 1.28398, 1.37527, 3),
    ],
)
def test_a_ratio_carries_fiellers_interval(
    part: str, name: str, value: float, low: float, high: float, n: int
) -> None:
    figure = of(part, name)
    assert figure.value == pytest.approx(value, abs=1e-5)
    assert (figure.low, figure.high) == (
        pytest.approx(low, abs=1e-5),
        pytest.approx(high, abs=1e-5),
    )
    assert figure.n == n
    assert figure.missing == ""


def test_bandwidth_is_the_inverse_of_the_known_interference_factor() -> None:
    figure = of("isolation", "memory-bandwidth")
    assert figure.value == pytest.approx(1 / 1.04830, abs=1e-5)
    assert figure.low == pytest.approx(1 / 1.06756, abs=1e-5)
    assert figure.high == pytest.approx(1 / 1.02972, abs=1e-5)


def test_what_a_study_did_not_give_is_said() -> None:
    assert of("isolation", "cpu-spread").missing == "The study gives no interval."
    assert of("shaping", "goodput-out").missing == "The study gives no n and no interval."
    assert "without n" in of("shaping", "rtt-by-rate").missing


def test_notes_of_the_numbers_travel_with_the_figure() -> None:
    assert any("best of 10" in note for note in of("isolation", "memory-spread").notes)


def test_a_percentage_more_becomes_a_ratio() -> None:
    nadeem = catalogue.load("nadeem-2015")
    cell = ("average", "PVE over XCP")
    table = "Section 4.4 text, CPU throughput"
    figure = compute_figure(nadeem, PublishedFigure(table=table, cell=cell, offset=1, scale=0.01))
    assert figure.value == pytest.approx(1.004)


def test_published_bounds_are_taken_over() -> None:
    caldwell = catalogue.load("caldwell-2011")
    row = "EC2, one generator"
    figure = compute_figure(
        caldwell,
        PublishedFigure(
            table="Results text",
            cell=(row, "throughput, mean"),
            low=(row, "throughput, 95% CI low"),
            high=(row, "throughput, 95% CI high"),
        ),
    )
    assert (figure.value, figure.low, figure.high) == (2361.6, 2269.1, 2454.2)
    assert figure.missing == "The study gives no n."


def test_a_cell_that_was_not_published_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"Table 3\.2 has no number in 'mean', '3 VM'"):
        compute_figure(DELGADO, PublishedFigure(table="Table 3.2", cell=("mean", "3 VM")))
