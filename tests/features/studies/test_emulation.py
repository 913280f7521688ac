"""Emulated rows: what was set, what was measured and what was published, held together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from nephoscope import catalog
from nephoscope.core.model import Better, Consistency, Estimate, MetricResult, RunResult, RunSummary
from nephoscope.features.scheduler.inference.verdict import Scheduler, SchedulerVerdicts, Word
from nephoscope.features.studies import catalogue
from nephoscope.features.studies import terminal as study_text
from nephoscope.features.studies.comparison import emulation
from nephoscope.features.studies.comparison.part_result import PartResult
from nephoscope.features.studies.definition.layouts import EmulatedRow
from nephoscope.features.studies.definition.study import Part
from nephoscope.features.studies.report.section import sections
from nephoscope.features.studies.report.wording import verdict_text
from nephoscope.measure import plans
from nephoscope.measure.lab.topology import Topology

STUDY = catalogue.load("zhuang-2012")
PARTS = {part.name: part for part in STUDY.definition.parts if part.emulated}
IN_LAB = {name: part for name, part in PARTS.items() if catalogue.plan_of(STUDY, part, "small").lab}
"""Without those that are simulated."""
STEADY = Consistency(None, None, None, None, None, "unknown")


def line(
    metric: str, target: str, factors: dict[str, Any], value: float, half: float
) -> MetricResult:
    estimate = Estimate(value, value - half, value + half, 0.95, 8, "ratio", "made")
    return MetricResult("cpu.gaps", metric, target, factors, Better.HIGHER, estimate, STEADY)


def made(
    half: float = 0.005, *, share: float = 0.75, word: Word = Word.RESERVATION_PER_CPU
) -> RunResult:
    """A run in which 30 of 40 ms gave `share`, and nothing else was measured."""
    of = [({"cpus_max": 1, "cpu": None, "process": 0})]
    of += [{"cpus_max": 2, "cpu": None, "process": n} for n in (0, 1)]
    lines = [line("cpu_share_cycles_ratio", "sedf-30-40", one, share, half) for one in of]
    seen = Scheduler("sedf-30-40", word, "each CPU has 30.0 ms in 40.0 ms.")
    return RunResult(
        RunSummary(id="made", confidence=0.95),
        tuple(lines),
        findings=(),
        invalid=(),
        parts=(SchedulerVerdicts((seen,)),),
    )


def first(result: RunResult) -> emulation.RowOutcome:
    return emulation.compare_rows(STUDY, PARTS["share"], result)[0]


def test_a_row_stands_between_what_was_set_and_what_was_published() -> None:
    row = first(made())
    assert row.all_shares_hold
    assert row.verdict == row.expected
    assert [cell.name for cell in row.shares] == [
        "one process",
        "two processes, #1",
        "two processes, #2",
    ]
    one = row.shares[0]
    assert (one.set_to, one.status) == (75, "holds")
    assert one.measured is not None
    assert one.measured.value == pytest.approx(75)
    # Typed from the study: Table 4.3, then Table 4.2.
    assert [(x.label, x.number.value) for x in one.published] == [("emulated", 75.6), ("EC2", 75.7)]
    assert [cell.published[0].number.value for cell in row.shares[1:]] == [74.0, 74.2]


@pytest.mark.parametrize(
    ("share", "half", "word"),
    [
        (0.75, 0.0199, "holds"),
        (0.75, 0.0201, "too wide"),
        (0.765, 0.006, "too wide"),
        (0.78, 0.005, "missed"),
        (0.70, 0.005, "missed"),
    ],
)
def test_the_whole_interval_has_to_lie_within_two_points(
    share: float, half: float, word: str
) -> None:
    assert first(made(half, share=share)).shares[0].status == word


@pytest.mark.parametrize(("whole", "status"), [(1.99, "missed"), (1.5, "not comparable")])
def test_a_miss_on_a_busy_machine_is_not_comparable_unless_it_is_guaranteed(
    whole: float, status: str
) -> None:
    busy = made(share=0.5)
    one = {"cpus_max": 1, "cpu": None, "process": 0}
    control = line("obtained_cpus", "cap-200", {"cpus_max": 2}, whole, 0.005)
    cap = line("cpu_share_ratio", "cap-150", one, 0.5, 0.005)
    rows = emulation.compare_rows(
        STUDY, PARTS["share"], replace(busy, metrics=(*busy.metrics, control, cap))
    )
    reservation, capped, *_ = rows
    assert (reservation.shares[0].status, capped.shares[0].status) == ("missed", status)
    is_explained = "two loops whose cap is the whole machine" in emulation.summarise(rows)
    assert is_explained == (status == "not comparable")


def test_a_wrong_word_from_inside_is_told() -> None:
    row = first(made(word=Word.CAP_PER_MACHINE))
    assert row.verdict != row.expected
    assert "expected reservation per CPU" in verdict_text(row)


def test_what_was_not_measured_is_absent_and_not_zero() -> None:
    rows = emulation.compare_rows(STUDY, PARTS["share"], made())
    other = rows[1]
    assert {cell.status for cell in other.shares} == {"not measured"}
    assert other.verdict == "nothing"
    assert all(cell.measured is None and cell.absent for cell in other.shares)


def test_no_interval_is_too_wide() -> None:
    result = made()
    bare = tuple(
        replace(one, estimate=replace(one.estimate, low=None, high=None)) for one in result.metrics
    )
    assert first(replace(result, metrics=bare)).shares[0].status == "too wide"


def test_every_row_of_both_tables_is_set_up() -> None:
    """Each published share of Tables 4.2 and 4.3 stands beside one of ours, once in each table."""
    named = [
        (beside.table, beside.cell)
        for part in IN_LAB.values()
        for row in part.emulated
        for share in row.shares
        for beside in share.published
    ]
    assert len(set(named)) == len(named)
    for table in ("Table 4.2", "Table 4.3"):
        shares = {
            number.cell
            for number in STUDY.numbers
            if number.table == table and "process" in number.column
        }
        assert {cell for name, cell in named if name == table} == shares


@pytest.mark.parametrize("part", IN_LAB.values(), ids=IN_LAB)
def test_what_is_set_follows_from_the_lab_of_the_plan(part: Part) -> None:
    """The shares of study.yaml are those of the slices, caps and weights in the plan."""
    plan = catalogue.plan_of(STUDY, part, "small")
    assert plan.lab is not None
    hosts = Topology.model_validate(plan.lab).hosts
    weights = {row.id: hosts[row.id].cpu.weight for row in part.emulated if "weight" in row.id}
    for row in part.emulated:
        spec = hosts[row.id].cpu
        for share in row.shares:
            loops = 2 if "two" in share.name else 1
            if spec.reservation is not None:
                wanted = spec.reservation.cpus
            elif spec.cap is not None:
                wanted = min(1.0, spec.cap / loops)
            else:
                wanted = spec.weight / sum(weights.values())
            assert share.set_to == pytest.approx(100 * wanted, abs=0.005)


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_every_figure_of_a_row_is_one_that_its_plan_measures(part: Part) -> None:
    settings = plans.expand(catalogue.plan_of(STUDY, part, "small"), catalog.load())
    for row in part.emulated:
        for share in row.shares:
            levels = share.measured.factors
            assert any(
                share.measured.target in one.targets
                and all(
                    str(one.factors[k]) == str(v) for k, v in levels.items() if k in one.factors
                )
                for one in settings
            ), (row.id, share.name)


def test_rows_are_in_every_form() -> None:
    rows = tuple(emulation.compare_rows(STUDY, PARTS["share"], made()))
    one = PartResult(PARTS["share"], "run", (), emulated=rows)
    text = study_text.comparison(STUDY, [one], ())
    flat = " ".join(text.split())
    assert "one process" in flat
    assert {"75.6", "emulated,"} <= set(flat.split())
    assert "Inferred scheduler: reservation per CPU. " in flat
    assert any("Emulated rows" in str(part.blocks) for part in sections(STUDY, [one], ()))
    assert "1 of 5 rows" in emulation.summarise(rows)


def test_a_word_that_is_none_is_told() -> None:
    share = {
        "name": "x",
        "set": 1,
        "measured": {"benchmark": "cpu.gaps", "metric": "obtained_cpus"},
    }
    with pytest.raises(ValidationError, match="is no verdict"):
        EmulatedRow.model_validate(
            {
                "id": "a",
                "title": "a",
                "target": "t",
                "verdict": "sedf",
                "why": "x",
                "shares": [share],
            }
        )
