"""A published figure with that of the lab and that of a model beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.features.studies import made

from nephoscope.core.model import Estimate, RunResult
from nephoscope.features.studies import catalogue
from nephoscope.features.studies import terminal as study_text
from nephoscope.features.studies.comparison import lab_and_model, part_result
from nephoscope.features.studies.comparison.lab_and_model import ThreeWay, three_way_numbers
from nephoscope.features.studies.comparison.part_result import PartResult
from nephoscope.features.studies.report import section
from nephoscope.features.studies.report.section import sections

STUDY = catalogue.load("zhuang-2012")


def of(part: str, result: RunResult) -> PartResult:
    return part_result.compare_part(STUDY, STUDY.part(part), result)


def values(level: float, n: int = 9) -> Sequence[float]:
    """Around a level, by at most 0.4 %, rising throughout: as dependent as values can be."""
    return [level * (1 + (number - n // 2) / 1000) for number in range(n)]


def lab(share: float = 0.75) -> PartResult:
    """The share of one process under 30 of 40 ms, and how long it runs at a time."""
    own: dict[str, Any] = {"cpus_max": 1}
    return of(
        "share",
        made.result(
            made.line(
                "cpu.gaps", "cpu_share_cycles_ratio", values(share), target="sedf-30-40", **own
            )
        ),
    )


def model(share: float = 0.751) -> PartResult:
    return of(
        "model",
        made.result(
            made.line(
                "sim.scheduler",
                "cpu_share_ratio",
                values(share),
                target="sedf-30-40",
                vm="one",
                vcpu=0,
            )
        ),
    )


def test_a_stated_parameter_has_a_row_and_a_share_that_the_plan_sets_has_none() -> None:
    """Table 4.3 states the scheduler's parameters; those of Table 4.2 (EC2) are inferred."""
    found = {one.location: one for one in three_way_numbers([lab(), model()])}
    assert set(found) == {("Table 4.3", ("m1.large E5430-1", "1-process"))}
    one = found["Table 4.3", ("m1.large E5430-1", "1-process")]
    assert one.published == 75.6  # typed from the study
    assert (one.measured.value, one.measured.n) == (pytest.approx(75), 9)
    assert (one.simulated.value, one.simulated.n) == (pytest.approx(75.1), 9)
    assert one.measured.low is not None
    assert one.measured.low < 75 < (one.measured.high or 0)
    assert one.verdict == lab_and_model.BOTH_AGREE


def test_one_of_both_alone_is_no_row() -> None:
    assert three_way_numbers([lab()]) == []
    assert three_way_numbers([model()]) == []
    assert three_way_numbers([]) == []
    assert "three-ways" not in {one.id for one in sections(STUDY, [lab()], ())}


def beside(measured: Estimate, simulated: Estimate) -> ThreeWay:
    marks = [lab_and_model.mark_within(75.0, one, 0.04) for one in (measured, simulated)]
    return ThreeWay(
        ("Table 1", ("a", "b")), "%", 75.0, measured, simulated, lab_and_model.verdict_of(*marks)
    )


def at(value: float, half: float | None = 0.5) -> Estimate:
    low, high = (None, None) if half is None else (value - half, value + half)
    return Estimate(value, low, high, 0.95, 9, "%", "made")


@pytest.mark.parametrize(
    ("measured", "simulated", "verdict"),
    [
        # 75 within 4 %: 72 to 78.
        (at(75), at(77.4), lab_and_model.BOTH_AGREE),
        (at(75), at(79), lab_and_model.MEASURED),
        (at(71), at(75), lab_and_model.SIMULATION),
        (at(71), at(80), lab_and_model.NEITHER),
        (at(75), at(77.8), lab_and_model.OPEN),
        (at(75, None), at(75), lab_and_model.OPEN),
    ],
)
def test_the_whole_interval_decides(measured: Estimate, simulated: Estimate, verdict: str) -> None:
    assert beside(measured, simulated).verdict == verdict


def test_the_sum_is_told_in_plain_words() -> None:
    found = [beside(at(75), at(75)), beside(at(75), at(80)), beside(at(75, None), at(75))]
    told = lab_and_model.summarise(found)
    assert told.startswith("1 of 3 published figures are met both by the machines in the lab and")
    assert "; 1 by the lab alone; 1 not decided (" in told
    assert "differ by at most 6.2 % of the simulated figure (Table 1, a, b)." in told


def test_page_text_and_document_have_it() -> None:
    parts = [lab(), model()]
    names = [one.id for one in sections(STUDY, parts, ())]
    assert names[:2] == ["summary", "three-ways"]
    blocks = str(sections(STUDY, parts, ())[1].blocks)
    for told in ("75.6 % of a CPU", "75.00 [74.70, 75.30]", "75.10 [74.80, 75.40], n 9"):
        assert told in blocks
    text = study_text.comparison(STUDY, parts, ())
    assert "PUBLISHED, MEASURED AND SIMULATED" in text
    document = section.document_of(parts, ())["measured_and_simulated"]
    assert [one["verdict"] for one in document] == [lab_and_model.BOTH_AGREE]
