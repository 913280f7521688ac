"""Findings on simulated runs whose figures the test sets."""

from __future__ import annotations

from dataclasses import replace

from tests.results import simulated

from nephoscope.core.model import Finding, Severity
from nephoscope.results.findings import findings


def found(*made: object) -> dict[str, Finding]:
    result = simulated.result_of(*made)  # type: ignore[arg-type]
    return {one.id: one for one in findings({}, result.metrics, None, result.parts)}


def test_a_region_beyond_the_objective_is_named_with_its_share() -> None:
    one = found(simulated.deployments())["beyond_objective"]
    assert one.severity is Severity.WARNING
    assert one.sentence.startswith(
        "1 of 3 regions get fewer than 95% of their responses within 300"
    )
    assert "Asia" in one.sentence
    assert "40.0 %" in one.sentence


def test_a_site_that_is_busy_all_the_time_is_a_warning() -> None:
    one = found(simulated.deployments())["site_too_busy"]
    assert one.sentence.startswith("The utilisation of site us is 97.0 %")


def test_requests_without_an_answer_are_told_worst_first() -> None:
    records, lines, merged = simulated.deployments()
    lost = [
        simulated.line("sim.geo", "unserved_ratio", value, "ratio", factors)
        for value, factors in ((0.02, {}), (0.05, {"region": "Asia"}), (0.0, {"region": "Europe"}))
    ]
    one = found((records, [*lines, *lost], merged))["unserved"]
    assert "most are lost in Asia: 5.00 %" in one.sentence
    assert [text.partition(":")[0] for text in one.evidence] == ["Asia", "all users"]


def test_several_sites_cannot_beat_the_better_one_alone() -> None:
    one = found(simulated.three_deployments())["scenarios_disagree"]
    assert one.severity is Severity.WARNING
    assert len(one.evidence) == 1
    assert one.evidence[0].startswith("Asia: 306 ms")


def test_deployments_on_targets_of_their_own_are_held_against_each_other_too() -> None:
    records, lines, merged = simulated.three_deployments()
    apart = [
        replace(one, key=replace(one.key, target=str(one.factors["placement"])), factors={})
        for one in records
    ]
    moved = [
        replace(
            one,
            target=str(one.factors["placement"]),
            factors={k: v for k, v in one.factors.items() if k != "placement"},
        )
        for one in lines
    ]
    one = found((apart, moved, merged))["scenarios_disagree"]
    assert one.sentence.startswith("both: With several sites")


def test_one_matrix_for_all_raises_no_such_claim() -> None:
    records, lines, merged = simulated.three_deployments()
    kept = [
        line
        for line in lines
        if not (line.factors.get("region") == "Asia" and line.factors["placement"] == "both")
    ]
    consistent = [*kept, *simulated.geo_lines({"Asia": 505.0}, {"placement": "both"})]
    ids = found((records, consistent, merged))
    assert "scenarios_disagree" not in ids


def test_a_choice_that_falls_with_its_assumptions_is_told() -> None:
    ids = found(simulated.placement(bound=0.2))
    assert "under 1 of 2 changed" in ids["fragile_choice"].sentence
    evidence = ("latency × 1.25, load × 1: us, eu, asia would be best",)
    assert ids["fragile_choice"].evidence == evidence
    assert "at most 20.0 %" in ids["choice_not_proven"].sentence
    assert "choice_not_proven" not in found(simulated.placement())


def test_no_choice_is_a_warning_with_the_best_there_is() -> None:
    one = found(simulated.placement(met=False))["no_choice"]
    assert one.severity is Severity.WARNING
    assert one.evidence[-1] == "us, eu, asia, $3.00 per hour: 99.9 % within the objective"


def test_a_saving_below_zero_is_told_and_one_above_is_not() -> None:
    assert "costs more than it saves" in found(simulated.saving(ratio=-0.119))["no_saving"].sentence
    assert "no_saving" not in found(simulated.saving())
