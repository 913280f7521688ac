"""Ours beside theirs: from a result whose numbers are made, to marks that are known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from nephoscope.core import documents
from nephoscope.core.model import InvalidTrial, MetricResult, TrialStatus
from nephoscope.features.studies import catalogue
from nephoscope.features.studies.comparison import part_result
from nephoscope.features.studies.comparison.rules import Mark
from nephoscope.features.studies.comparison.side_by_side import ComparisonOutcome, compare
from nephoscope.features.studies.definition.study import Part, StudyComparison
from nephoscope.features.studies.report import section

from .made import line, noisy, result

DELGADO = catalogue.load("delgado-2010")
ISOLATION = DELGADO.part("isolation")


def quiet(drift: float = 1.0) -> list[MetricResult]:
    """What the controls ask for: pi and STREAM alone, and beside a load that waits."""
    stream = {"target": "victim", "kernel": "triad"}
    return [
        line("cpu.pi", "pi_time_ns", noisy(1000.0 * drift, 0.001, 71), beside="quiet"),
        line("mem.stream", "stream_bytes_per_s", noisy(1e10, 0.001, 72), **stream, beside="none"),
        line("mem.stream", "stream_bytes_per_s", noisy(1e10, 0.001, 73), **stream, beside="quiet"),
    ]


def outcomes(*lines: MetricResult, drift: float = 1.0) -> dict[str, ComparisonOutcome]:
    made = result(*lines, *quiet(drift))
    return {one.id: one for one in compare(DELGADO, ISOLATION, made)}


def pi(level: float, load: str, seed: int, spread: float = 0.001) -> MetricResult:
    return line("cpu.pi", "pi_time_ns", noisy(level, spread, seed), beside=load)


@pytest.mark.parametrize(
    ("loaded", "mark"),
    [(1300.0, Mark.IN_KIND), (900.0, Mark.CONTRADICTED), (1000.0, Mark.CONTRADICTED)],
)
def test_the_direction_of_an_effect(loaded: float, mark: Mark) -> None:
    found = outcomes(pi(1000.0, "none", 1), pi(loaded, "cpu", 2))["cpu-time"]
    assert found.mark is mark
    assert found.measured is not None
    assert found.measured.value == pytest.approx(loaded / 1000, rel=0.002)
    assert found.measured.n == 20


def test_an_interval_that_holds_no_effect_decides_nothing() -> None:
    found = outcomes(pi(1000.0, "none", 1, 0.2), pi(1010.0, "cpu", 2, 0.2))["cpu-time"]
    assert found.mark is Mark.NOT_COMPARABLE
    assert "too wide" in found.sentence


def test_more_variation_is_a_ratio_of_spreads() -> None:
    found = outcomes(pi(1000.0, "none", 1, 0.001), pi(1000.0, "cpu", 2, 0.02))["cpu-spread"]
    assert found.mark is Mark.IN_KIND
    assert found.measured is not None
    assert found.measured.value > 3


@pytest.mark.parametrize("drift", [1.1, 0.9])
def test_a_control_that_drifts_stops_what_it_is_about(drift: float) -> None:
    found = outcomes(pi(1000.0, "none", 1), pi(1300.0, "cpu", 2), drift=drift)["cpu-time"]
    assert found.mark is Mark.NOT_COMPARABLE
    assert "the control does not hold" in found.sentence.lower()
    assert found.measured is not None, "the figure is shown all the same"
    assert found.control is not None
    assert found.control.value == pytest.approx(drift, rel=0.01)
    assert f"measured {found.control.value:.4g} [{found.control.low:.4g}" in found.sentence
    # What the sentence says of the control is in the document too.
    documents.to_text(documents.to_json({"comparisons": [found]}))


def test_a_ratio_has_no_unit_but_times() -> None:
    entry = next(one for one in ISOLATION.comparisons if one.id == "cpu-time")
    assert entry.unit == "times"
    values = entry.model_dump() | {"unit": "MB/s"}
    with pytest.raises(ValueError, match="a ratio is in times"):
        type(entry).model_validate(values)


def test_a_control_says_nothing_of_other_comparisons() -> None:
    memory = line(
        "mem.stream", "stream_bytes_per_s", noisy(5e9, 0.001, 74), beside="memory", kernel="triad"
    )
    found = outcomes(memory, pi(1000.0, "none", 1), drift=1.5)
    assert found["memory-bandwidth"].mark is Mark.IN_KIND
    assert found["cpu-time"].mark is Mark.NOT_COMPARABLE


def test_a_run_that_lacks_a_setting_says_which() -> None:
    found = outcomes(pi(1000.0, "none", 1))["cpu-time"]
    assert found.mark is Mark.NOT_COMPARABLE
    assert "no valid trial of cpu.pi time (cpu) on victim" in found.sentence
    assert found.measured is None


@pytest.mark.parametrize(
    ("others_valid", "amount"), [(True, "too few valid trials"), (False, "no valid trial")]
)
def test_excluded_trials_are_named_where_they_leave_no_estimate(
    others_valid: bool, amount: str
) -> None:
    excluded = InvalidTrial(
        "t", "cpu.pi", "victim", {"beside": "cpu"}, TrialStatus.INVALID, ("it was throttled",)
    )
    loss = line("cpu.pi", "digits_count", [1.0] * 5, beside="cpu")
    run = result(pi(1000.0, "none", 1), *quiet(), *[loss] * others_valid)
    found = compare(DELGADO, ISOLATION, replace(run, invalid=(excluded,)))
    sentence = next(one.sentence for one in found if one.id == "cpu-time")
    assert f"has {amount} of cpu.pi time (cpu) on victim: 1 was excluded (it was" in sentence


def test_too_few_repetitions_are_no_interval() -> None:
    few = [
        line("cpu.pi", "pi_time_ns", [1000.0, 1001.0, 1002.0], beside=load)
        for load in ("none", "cpu")
    ]
    found = outcomes(*few)["cpu-time"]
    assert found.mark is Mark.NOT_COMPARABLE
    assert "3 measured repetitions give no interval" in found.sentence


def test_two_lines_that_fit_are_not_guessed_between() -> None:
    found = outcomes(
        pi(1000.0, "none", 1),
        line("cpu.pi", "pi_time_ns", noisy(1.0, 0.01, 3), beside="cpu", threads=1),
        line("cpu.pi", "pi_time_ns", noisy(1.0, 0.01, 4), beside="cpu", threads=2),
    )["cpu-time"]
    assert "2 lines" in found.sentence


def test_a_loads_own_samples_are_no_answer() -> None:
    rows = line("cpu.pi", "pi_time_ns", noisy(9.0, 0.01, 3), beside="cpu", load="cpu")
    found = outcomes(pi(1000.0, "none", 1), pi(1300.0, "cpu", 2), rows)["cpu-time"]
    assert found.mark is Mark.IN_KIND


def shares(one: float, two: float, whole: float = 1.99) -> list[ComparisonOutcome]:
    """Of the reservation of 30 in 40 ms: one loop, and the first of two."""
    zhuang = catalogue.load("zhuang-2012")
    share = "cpu_share_cycles_ratio"
    made = result(
        line("cpu.gaps", share, noisy(one, 0.001, 5), "sedf-30-40", cpus_max=1),
        line("cpu.gaps", share, noisy(two, 0.001, 6), "sedf-30-40", cpus_max=2, process=0),
        line("cpu.gaps", "obtained_cpus", noisy(whole, 0.001, 7), "cap-200", cpus_max=2),
    )
    found = compare(zhuang, zhuang.part("share"), made)
    return [item for item in found if item.id in ("sedf-30-40-one", "sedf-30-40-two-1")]


def test_nothing_but_a_guarantee_is_concluded_where_the_control_does_not_hold() -> None:
    zhuang = catalogue.load("zhuang-2012")
    made = result(
        line(
            "cpu.gaps",
            "cpu_share_cycles_ratio",
            noisy(0.75, 0.001, 5),
            "sedf-30-40",
            cpus_max=1,
        ),
        line(
            "cpu.gaps",
            "cpu_share_cycles_ratio",
            noisy(0.75, 0.001, 6),
            "cap-150",
            cpus_max=2,
            cpu=0,
        ),
        # Something else had a third of the machine.
        line("cpu.gaps", "obtained_cpus", noisy(1.3, 0.001, 7), "cap-200", cpus_max=2),
    )
    found = {one.id: one for one in compare(zhuang, zhuang.part("share"), made)}
    capped, reserved = found["cap-150-two-1"], found["sedf-30-40-one"]
    assert capped.mark is Mark.NOT_COMPARABLE
    assert "control does not hold" in capped.sentence
    assert "at least 97 % of a CPU each; measured 6" in capped.sentence
    assert capped.measured is not None  # shown all the same
    assert reserved.mark is Mark.IN_NUMBER  # a reservation holds whatever else runs


def test_a_share_that_was_set_is_reproduced_in_number() -> None:
    one, two = shares(0.751, 0.749)
    assert (one.mark, two.mark) == (Mark.IN_NUMBER, Mark.IN_NUMBER)
    assert one.measured is not None
    assert one.measured.value == pytest.approx(75.1, rel=0.002)  # in their unit, percent
    assert two.measured is not None
    assert two.measured.value == pytest.approx(74.9, rel=0.002)


def test_another_share_is_not_that_number() -> None:
    one, two = shares(0.60, 1.05)
    assert one.mark is Mark.IN_KIND  # less than a CPU, as theirs is
    assert two.mark is Mark.CONTRADICTED


def test_an_order_is_held_step_by_step() -> None:
    khurshid = catalogue.load("khurshid-2009")
    speeds = {"chicago": 100.0, "mit": 50.0, "japan": 10.0}

    def order_of(given: dict[str, float]) -> ComparisonOutcome:
        lines = [
            line(
                "net.throughput",
                "goodput_bytes_per_s",
                noisy(speed, 0.01, seed),
                where,
                direction="down",
            )
            for seed, (where, speed) in enumerate(given.items())
        ]
        return compare(khurshid, khurshid.part("users"), result(*lines))[0]

    right = order_of(speeds)
    assert right.mark is Mark.IN_KIND
    assert [round(step.value) for step in right.steps] == [2, 5]
    assert order_of({**speeds, "japan": 80.0}).mark is Mark.CONTRADICTED
    assert order_of({**speeds, "japan": 50.0}).mark is Mark.NOT_COMPARABLE


def test_an_order_that_the_plan_sets_is_no_reproduction() -> None:
    """Round trips under delays that are set have their order by construction."""
    khurshid = catalogue.load("khurshid-2009")

    def mark_of(japan: float) -> Mark:
        trips = {"chicago": 6.0, "mit": 28.0, "japan": japan}
        lines = [
            line("net.rtt", "rtt_p50_ns", noisy(trip, 0.01, seed), user)
            for seed, (user, trip) in enumerate(trips.items())
        ]
        found = compare(khurshid, khurshid.part("users"), result(*lines))
        return next(one.mark for one in found if one.id == "serial-requests-by-distance")

    assert mark_of(170.0) is Mark.SET
    assert mark_of(28.0) is Mark.NOT_COMPARABLE


def test_what_cannot_be_compared_is_shown_all_the_same() -> None:
    shaping = DELGADO.part("shaping")
    made = line(
        "net.throughput",
        "goodput_bytes_per_s",
        noisy(5.7e6, 0.01, 7),
        beside="none",
        direction="down",
    )
    found = {one.id: one for one in compare(DELGADO, shaping, result(made))}["goodput-in"]
    assert found.mark is Mark.NOT_COMPARABLE
    assert found.measured is not None
    assert found.measured.value == pytest.approx(45.6, rel=0.01)


def test_the_comparison_is_written_beside_the_report(tmp_path: Path) -> None:
    made = result(pi(1000.0, "none", 1), pi(1300.0, "cpu", 2), *quiet())
    path = section.write(
        DELGADO, [part_result.compare_part(DELGADO, ISOLATION, made, ["It is busy."])], tmp_path
    )
    text = path.read_text(encoding="utf-8")
    assert "reproduced in kind" in text
    assert "1.022 times [1.018, 1.027], n 100 (Table 3.2)" in text
    assert "It is busy." in text
    assert "It is busy." in (tmp_path / "study.md").read_text(encoding="utf-8")
    document = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))
    assert document["comparisons"][0]["measured"]["n"] == 20
    assert document["comparisons"][0]["published"]["high"] == pytest.approx(1.02722, abs=1e-5)
    assert (
        document["comparisons"][2]["measured"] is None
    )  # STREAM beside a load was not in this run


COMPLETE = {
    "id": "x",
    "claim": "c",
    "published": {"table": "t", "cell": ("a", "b")},
    "measured": {"benchmark": "null", "metric": "null_ns"},
    "ground": "same mechanism",
    "margin": 0.1,
    "margin_why": "w",
    "why": "w",
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"margin": None}, "needs `margin`"),
        ({"margin_why": ""}, "needs `margin`"),
        ({"ground": "in kind"}, "needs `neutral`"),
        ({"measured": None}, "needs `measured`"),
        ({"published": {"table": "t"}}, "give one of"),
        ({"published": {"table": "t", "order": ("a", "b")}}, "an order is compared with an order"),
        ({"published": {"table": "t", "numerator": ("a", "b")}}, "belong together"),
        ({"why": ""}, "at least 1 character"),
    ],
)
def test_a_mapping_that_is_not_complete_is_refused(change: dict[str, Any], words: str) -> None:
    StudyComparison.model_validate(COMPLETE)
    with pytest.raises(ValidationError, match=words):
        StudyComparison.model_validate({**COMPLETE, **change})


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({}, "either `plan` or `not_yet`"),
        ({"plan": "p.yaml", "not_yet": "later"}, "either `plan` or `not_yet`"),
        ({"plan": "p.yaml", "scales": {"small": {}}}, "each scale"),
        ({"not_yet": "later", "comparisons": [COMPLETE]}, "nothing is measured"),
    ],
)
def test_a_part_is_here_with_both_scales_or_not_yet(part: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Part.model_validate({"name": "p", "title": "t", "section": "s", **part})


def disks(limited: tuple[float, float], free: tuple[float, float]) -> dict[str, ComparisonOutcome]:
    """Outcomes of part `nas` by what victim and neighbour read, with and without limits."""
    lines = []
    for rate, values in (("20Mbit/s", limited), ("100Mbit/s", free)):
        factors = {
            "beside": "reads",
            "victim_rate": rate,
            "neighbour_rate": rate,
            "operation": "read",
        }
        for target, value, seed in zip(("victim", "neighbour"), values, (1, 2), strict=True):
            own = {"load": "reads"} if target == "neighbour" else {}
            reads = noisy(value, 0.01, seed)
            lines.append(line("load.disk", "load_bytes_per_s", reads, target, **factors, **own))
    return {one.id: one for one in compare(DELGADO, DELGADO.part("nas"), result(*lines))}


def test_fairness_is_jains_index_of_both_sides() -> None:
    found = disks(limited=(2.0, 2.0), free=(1.0, 4.0))
    assert found["fair-reads"].mark is Mark.IN_KIND
    assert found["fair-reads"].measured is not None
    assert found["fair-reads"].measured.value == pytest.approx(1, abs=0.001)
    unfair = found["unfair-reads"]
    assert unfair.mark is Mark.NOT_COMPARABLE  # another mechanism than the study's
    assert unfair.measured is not None
    assert unfair.measured.value == pytest.approx(25 / (2 * 17), rel=0.02)
    assert found["share-of-reads"].mark is Mark.IN_KIND


def test_limits_that_share_unfairly_contradict_the_proposal() -> None:
    found = disks(limited=(1.0, 4.0), free=(1.0, 4.0))
    assert found["fair-reads"].mark is Mark.CONTRADICTED


@pytest.mark.parametrize(
    ("warnings", "mark"), [((), Mark.CONTRADICTED), (("a load",), Mark.NOT_COMPARABLE)]
)
def test_a_value_without_a_control_is_not_contradicted_beside_other_work(
    warnings: tuple[str, ...], mark: Mark
) -> None:
    """A ratio is: other work ran beside both of its sides."""
    goodput = {"direction": "up", "beside": "none"}
    lines = [
        line("net.throughput", "goodput_bytes_per_s", noisy(4e6, 0.01, 1), **goodput),
        pi(1000.0, "none", 1),
        pi(900.0, "cpu", 2),
        *quiet(),
    ]
    shaping = compare(DELGADO, DELGADO.part("shaping"), result(*lines), warnings)
    value = next(one for one in shaping if one.id == "goodput-out")
    assert value.mark is mark
    assert value.sentence.startswith("Nothing is concluded") == bool(warnings)
    isolation = compare(DELGADO, ISOLATION, result(*lines), warnings)
    ratio = next(one for one in isolation if one.id == "cpu-time")
    assert ratio.mark is Mark.CONTRADICTED


@pytest.mark.parametrize(("spread", "mark"), [(0.01, Mark.IN_KIND), (0.8, Mark.NOT_COMPARABLE)])
def test_alike_conditions_that_may_differ_as_much_leave_no_effect(
    spread: float, mark: Mark
) -> None:
    loads = {"none": 1000.0, "cpu": 1100.0}
    lines = [pi(level, load, seed) for seed, (load, level) in enumerate(loads.items())]
    times = [1000 * (1 + spread), 1000 * (1 - spread)] * 10
    waits = line("cpu.pi", "pi_time_ns", times, beside="quiet")
    compared = compare(DELGADO, ISOLATION, result(*lines, waits))
    found = next(one for one in compared if one.id == "cpu-time")
    assert found.mark is mark
    assert found.sentence.startswith("Nothing is concluded: alike") == (mark is Mark.NOT_COMPARABLE)
