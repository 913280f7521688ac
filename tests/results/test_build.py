"""The result of a run, held to samples that the test set."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests import schemas
from tests.results.made import NULL_PLAN, make_run
from tests.unmerged import unmerge

from nephoscope.core.documents import schema_of
from nephoscope.core.model import (
    Better,
    Estimate,
    MetricResult,
    RunResult,
    Sample,
    Setting,
    TrialCounts,
)
from nephoscope.features.compaction.summarise import summary_of
from nephoscope.features.comparison.result import Comparisons
from nephoscope.report import report_files
from nephoscope.results import analyse_run
from nephoscope.store import MEASURED, Store


def shuffled(round_number: int) -> int:
    """1 … 10 for rounds 1 … 10 (and 1 … 20 for twenty), in an order without a trend."""
    return round_number * 7 % 11 if round_number <= 10 else 10 + (round_number - 10) * 7 % 11


def steady(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
    """Round r yields 100 + shuffled(r) (the middle of three), and a histogram of 100 values."""
    middle = 100.0 + shuffled(round_number)
    return [
        Sample("null_ns", middle - 1),
        Sample("null_ns", middle),
        Sample("null_ns", middle + 50),
        *(Sample("null_latency_ns", float(value), 10) for value in range(1, 11)),
    ]


def line(result: RunResult, metric: str) -> MetricResult:
    """The only line of a metric."""
    (found,) = [line for line in result.metrics if line.metric == metric]
    return found


def test_distributions_without_enough_events_do_not_end_the_analysis(tmp_path: Path) -> None:
    def sparse(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
        # Too few events in a trial for any percentile of it.
        latency = [Sample("null_latency_ns", 5.0, 1)] if round_number == 1 else []
        return [Sample("null_ns", 100.0 + shuffled(round_number)), *latency]

    plan = NULL_PLAN + "    factors: {samples: [1, 2]}\n"
    result = analyse_run.build(make_run(tmp_path, plan, sparse, rounds=10))
    assert {line.metric for line in result.metrics} == {"null_ns"}


def test_a_trial_counts_with_its_median_and_a_metric_with_the_median_of_trials(
    tmp_path: Path,
) -> None:
    result = analyse_run.build(make_run(tmp_path, NULL_PLAN, steady, rounds=10))
    found = line(result, "null_ns")
    # Trials 101 … 110 at n = 10: the ranks 2 and 9 cover more than 95 %, 3 and 8 less.
    assert found.trial_values == tuple(100.0 + shuffled(number) for number in range(1, 11))
    assert found.rounds == tuple(range(1, 11))
    estimate = found.estimate
    assert estimate.value == 105.5
    assert estimate.low is not None
    assert estimate.high is not None
    assert 101.9 < estimate.low < 102.1
    assert 108.9 < estimate.high < 109.1
    assert (estimate.n, estimate.unit, estimate.confidence) == (10, "ns", 0.95)
    assert "order statistics 2.0 and 9.0 of 10, coverage 0.97" in estimate.method
    assert found.better is Better.LOWER
    assert found.headline


def test_warm_up_and_invalid_rounds_never_enter_a_figure(tmp_path: Path) -> None:
    result = analyse_run.build(make_run(tmp_path, NULL_PLAN, steady, rounds=12, invalid=[3, 4]))
    found = line(result, "null_ns")
    assert 100.0 + shuffled(3) not in found.trial_values
    assert found.rounds == (1, 2, 5, 6, 7, 8, 9, 10, 11, 12)
    assert result.run.trials == TrialCounts(valid=10, invalid=2, failed=0, warmup=1)
    assert [trial.reasons for trial in result.invalid] == [("the test says so",)] * 2


def test_a_damaged_warm_up_trial_is_among_the_excluded_ones(tmp_path: Path) -> None:
    run = make_run(tmp_path, NULL_PLAN, steady, rounds=10)
    (path,) = unmerge(run).trials_path.glob("w*.parquet")
    path.write_bytes(b"PAR1")
    result = analyse_run.build(Store(tmp_path).open(run.id))
    (excluded,) = result.invalid
    assert (excluded.trial, excluded.cause) == (path.stem, "file_damaged")
    assert result.run.trials == TrialCounts(valid=10, invalid=0, failed=0, warmup=1)


def test_percentiles_come_from_merged_histograms_and_only_where_the_gates_allow(
    tmp_path: Path,
) -> None:
    result = analyse_run.build(make_run(tmp_path, NULL_PLAN, steady, rounds=10))
    # 10 trials of 100 values: 1000 in all, so p99 (368) exists and p99.9 (3688) does not.
    assert line(result, "null_latency_p50_ns").estimate.value == 5.0
    assert line(result, "null_latency_p90_ns").estimate.value == 9.0
    assert line(result, "null_latency_p99_ns").estimate.value == 10.0
    assert not [line for line in result.metrics if "p999" in line.metric]
    (refused,) = result.refused
    assert refused.startswith("null latency: no p99.9 of 1000 observations.")
    assert "3688" in refused
    values, counts = result.histograms["null", "null_latency_ns", "local", "{}"]
    assert (values, counts) == ([float(v) for v in range(1, 11)], [100] * 10)


def test_a_trials_own_percentile_is_told_only_where_each_trial_alone_has_enough(
    tmp_path: Path,
) -> None:
    result = analyse_run.build(make_run(tmp_path, NULL_PLAN, steady, rounds=10))
    # A trial has 100 values: enough for p50 (6) and p90 (36), too few for p99 (368).
    assert line(result, "null_latency_p90_ns").trial_values == (9.0,) * 10
    assert line(result, "null_latency_p99_ns").trial_values == ()
    assert line(result, "null_latency_p99_ns").rounds == ()


def test_too_few_trials_give_no_percentile_and_one_sentence(tmp_path: Path) -> None:
    result = analyse_run.build(make_run(tmp_path, NULL_PLAN, steady, rounds=5))
    assert [found.metric for found in result.metrics] == ["null_ns"]
    assert line(result, "null_ns").estimate.low is None
    (refused,) = result.refused
    assert refused.startswith("null latency: no percentiles.")


def test_a_wide_interval_is_called_not_converged(tmp_path: Path) -> None:
    result = analyse_run.build(make_run(tmp_path, NULL_PLAN, steady, rounds=10))
    # The interval from about 102 to 109 is 3.4 % to each side of 105.5; asked were 2 %.
    (warning,) = line(result, "null_ns").warnings
    assert warning.startswith("Not converged: ±3.4 % after 10 trials, wanted ±2 %")
    assert result.run.converged is False
    assert result.run.not_converged == ("null",)


@pytest.mark.parametrize(("rounds", "wanted"), [(9, ["at least 10 trials"]), (10, [])])
def test_a_width_inside_the_wanted_one_is_never_called_too_wide(
    tmp_path: Path, rounds: int, wanted: list[str]
) -> None:
    def narrow(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
        return [Sample("null_ns", 1000.0 + (round_number * 7) % 10)]

    found = line(analyse_run.build(make_run(tmp_path, NULL_PLAN, narrow, rounds=rounds)), "null_ns")
    assert (found.estimate.half_width_ratio or 1) < 0.02
    told = [warning.partition("wanted ")[2].partition(",")[0] for warning in found.warnings]
    assert told == wanted


def test_excluded_trials_are_counted_alike_everywhere(tmp_path: Path) -> None:
    run = make_run(tmp_path, NULL_PLAN, steady, rounds=12, invalid=(0, 3, 4))
    result = analyse_run.build(run)
    counts = result.run.trials
    (many,) = [found for found in result.findings if found.id == "many_invalid"]
    assert counts.invalid + counts.failed == len(result.invalid) == 2
    assert many.sentence == "2 of 12 trials were excluded."
    text = report_files.terminal(result, colour=False, width=200)
    assert set(re.findall(r"(?<!of )\b(\d+) trials (?:were )?excluded", text)) == {"2"}


def test_a_drift_is_told_and_its_interval_is_a_lower_bound(tmp_path: Path) -> None:
    def drifting(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
        return [Sample("null_ns", 100.0 + round_number)]

    found = line(analyse_run.build(make_run(tmp_path, NULL_PLAN, drifting)), "null_ns")
    # All values, 101 … 110: no interval of a median leaves them.
    assert (found.estimate.low, found.estimate.high) == (101, 110)
    assert "depend on each other" in found.estimate.note
    assert "lower bound" in found.estimate.note


def test_a_narrow_interval_is_converged(tmp_path: Path) -> None:
    def narrow(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
        return [Sample("null_ns", 1000.0 + (round_number * 7) % 10)]

    result = analyse_run.build(make_run(tmp_path, NULL_PLAN, narrow))
    assert line(result, "null_ns").warnings == ()
    assert result.run.converged is True


def test_equal_values_are_called_a_resolution_not_a_precision(tmp_path: Path) -> None:
    def equal(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
        return [Sample("null_ns", 100.0)]

    found = line(analyse_run.build(make_run(tmp_path, NULL_PLAN, equal)), "null_ns")
    assert "All 10 values are equal" in " ".join((*found.warnings, found.estimate.note))


def test_samples_with_factors_of_their_own_are_lines_of_their_own(tmp_path: Path) -> None:
    def by_cpu(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
        return [
            Sample("null_ns", 10.0 * cpu + round_number, factors={"cpu": cpu}) for cpu in (1, 2)
        ]

    result = analyse_run.build(make_run(tmp_path, NULL_PLAN, by_cpu))
    assert [(dict(found.factors), found.estimate.value) for found in result.metrics] == [
        ({"cpu": 1}, 15.5),
        ({"cpu": 2}, 25.5),
    ]


def test_nothing_valid_is_a_result_without_metrics(tmp_path: Path) -> None:
    run = make_run(tmp_path, NULL_PLAN, steady, rounds=3, invalid=[1, 2, 3])
    result = analyse_run.build(run)
    assert result.metrics == ()
    assert result.run.trials.valid == 0
    schemas.validate(report_files.document(result), schemas.result_schema())


def test_the_same_store_gives_the_same_bytes_that_the_schema_allows(tmp_path: Path) -> None:
    run = make_run(tmp_path, NULL_PLAN, steady, rounds=12, invalid=[2], state=MEASURED)
    one = report_files.document(analyse_run.build(run))
    schemas.validate(one, schemas.result_schema())
    assert json.dumps(one) == json.dumps(report_files.document(analyse_run.build(run)))


def test_the_confidence_that_is_asked_for_is_used(tmp_path: Path) -> None:
    run = make_run(tmp_path, NULL_PLAN, steady, rounds=10)
    narrow = line(analyse_run.build(run, confidence=0.8), "null_ns").estimate
    wide = line(analyse_run.build(run), "null_ns").estimate
    assert narrow.confidence == 0.8
    assert narrow.low is not None
    assert wide.low is not None
    assert narrow.low > wide.low


@pytest.mark.parametrize("schema", [schemas.result_schema(), schema_of(Comparisons, "comparison")])
def test_the_schemas_are_schemas(schema: dict[str, object]) -> None:
    schemas.check_schema(schema)


MODEL = NULL_PLAN + "targets:\n  - {name: model, kind: sim}\n"


def drifting(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
    return [Sample("null_ns", 100.0 + round_number)]


def test_replications_of_a_simulation_cannot_depend_on_each_other(tmp_path: Path) -> None:
    """The same values in the same order: of a machine a drift, of a model chance."""
    of_machine, of_model = (
        line(analyse_run.build(make_run(tmp_path / name, plan, drifting)), "null_ns")
        for name, plan in (("machine", NULL_PLAN), ("model", MODEL))
    )
    assert "depend on each other" in of_machine.estimate.note
    assert not of_machine.simulated
    assert of_model.estimate.note == ""
    # Ranks 2 and 9 of 101 … 110.
    assert (of_model.estimate.low, of_model.estimate.high) == (102.0, 109.0)
    assert of_model.simulated


def test_equal_replications_blame_no_timer(tmp_path: Path) -> None:
    def equal(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
        return [Sample("null_ns", 7.0)]

    of_machine, of_model = (
        line(analyse_run.build(make_run(tmp_path / name, plan, equal)), "null_ns").estimate
        for name, plan in (("machine", NULL_PLAN), ("model", MODEL))
    )
    assert "too coarse" in of_machine.note
    assert of_model.note == ""
    assert of_model.method.endswith("every replication gives this value")
    assert (of_model.low, of_model.high, of_model.n) == (7.0, 7.0, 10)


def test_few_equal_replications_still_say_why_there_is_no_interval(tmp_path: Path) -> None:
    def equal(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
        return [Sample("null_ns", 7.0)]

    run = make_run(tmp_path, MODEL, equal, rounds=3)
    assert "needs 6 repetitions" in line(analyse_run.build(run), "null_ns").estimate.note


SHARES = (0.001, 0.01, 0.02, 0.05, 0.3, 0.6)


def drifting_shares(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
    value = SHARES[max(round_number, 1) - 1]
    return [Sample("cpu_share_ratio", value), Sample("throttled_ratio", value)]


def test_the_interval_of_a_median_ends_at_the_values(tmp_path: Path) -> None:
    # A drift once carried it beyond them, and a share beyond 1.
    plan = NULL_PLAN.replace('"null"', "cpu.gaps")
    run = make_run(tmp_path, plan, drifting_shares, rounds=len(SHARES))
    result = analyse_run.build(run)
    stored = {one.metric: one.estimates[one.metric] for one in summary_of(run).metrics}
    for name in ("cpu_share_ratio", "throttled_ratio"):
        found, kept = line(result, name).estimate, stored[name]
        assert isinstance(kept, Estimate)
        assert (found.low, found.high) == (kept.low, kept.high) == (SHARES[0], SHARES[-1])
        assert "lower bound" in found.note
