"""Experiments whose truth the test sets: what the design says has to come out."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from pathlib import Path

import pytest
from tests import schemas
from tests.results.made import Sampler, make_run, run_data
from tests.unmerged import unmerge

from nephoscope import catalog
from nephoscope.core.model import Better, Consistency, Estimate, MetricResult, Sample, Setting
from nephoscope.features.experiments.records import Experiment
from nephoscope.features.experiments.result import analyse
from nephoscope.measure import plans
from nephoscope.measure.plans.files.load import from_text
from nephoscope.report import report_files
from nephoscope.results import analyse_run
from nephoscope.stats.interference import turned
from nephoscope.stats.statistics import estimates

CROSSED = """
name: crossed
repeat: {min: 10, max: 10}
targets:
  - {name: one}
  - {name: two}
benchmarks:
  - benchmark: "null"
    factors: {samples: [1, 2], seed: [0, 1]}
factors:
  wait: {path: benchmarks.0.params.wait_ns, levels: [0ns, 1us, 2us]}
"""

EFFECT = {
    "samples": {1: 1.0, 2: 1.3},
    "seed": {0: 1.0, 1: 1.0},
    "wait": {0: 1.0, 1000: 0.8, 2000: 1.5},
}


def truth(setting: Setting) -> float:
    value = 100.0
    for name, of_level in EFFECT.items():
        if name in setting.factors:
            value *= of_level[setting.factors[name]]
    return value


def drifting(noise: float, seed: int = 3) -> Sampler:
    """Values with the true effects, much drift between rounds, little noise within them."""
    rng = random.Random(seed)
    drift = {number: rng.uniform(0.5, 2.0) for number in range(200)}

    def sample(setting: Setting, number: int, target: str) -> list[Sample]:
        factor = 1.1 if target == "two" else 1.0
        value = truth(setting) * factor * drift[number] * (1 + rng.gauss(0, noise))
        return [Sample("null_ns", value)]

    return sample


def stored(store: Path, text: str, sampler: Sampler, rounds: int = 10) -> Experiment:
    """The experiment of a run in a store; the document keeps to its schema."""
    result = analyse_run.build(make_run(store, text, sampler, rounds=rounds))
    document = json.loads(json.dumps(report_files.document(result)))
    schemas.validate(document, schemas.result_schema())
    found = result.part(Experiment)
    assert found is not None
    return found


def built(text: str, sampler: Sampler, rounds: int = 10) -> Experiment:
    """As `stored`, without files: many experiments in little time."""
    known = catalog.load()
    plan = from_text(text, "plan.yaml", {}, known)
    settings = plans.expand(plan, known)
    values: dict[tuple[int, str], list[float]] = {}
    for number in range(1, rounds + 1):
        for setting in settings:
            for target in setting.targets:
                (sample,) = sampler(setting, number, target)
                values.setdefault((setting.index, target), []).append(sample.value)
    metrics = [
        MetricResult(
            benchmark=settings[index].benchmark,
            metric="null_ns",
            target=target,
            factors=settings[index].factors,
            better=Better.LOWER,
            estimate=estimates.median(found, unit="ns"),
            consistency=Consistency(None, None, None, None, None, "unknown"),
            headline=True,
            trial_values=tuple(found),
            rounds=tuple(range(1, rounds + 1)),
        )
        for (index, target), found in values.items()
    ]
    manifest = {
        "plan": plans.plan_values(plan),
        "settings": json.loads(json.dumps([asdict(setting) for setting in settings])),
    }
    made = analyse(run_data((), metrics, manifest, confidence=plan.confidence))
    assert made is not None
    return made


def covers(estimate: Estimate | None, value: float) -> bool:
    assert estimate is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low <= value <= estimate.high


def test_a_plan_without_a_design_has_no_experiment(tmp_path: Path) -> None:
    text = 'name: plain\nbenchmarks: [{benchmark: "null", factors: {samples: [1, 2]}}]\n'
    result = analyse_run.build(make_run(tmp_path, text, drifting(0.01)))
    assert result.part(Experiment) is None
    assert report_files.document(result)["experiment"] is None


def test_main_effects_of_a_full_crossing_survive_drift(tmp_path: Path) -> None:
    found = stored(tmp_path, CROSSED, drifting(0.01))
    assert {one.kind for one in found.designs} == {"full"}
    told = {}
    for one in found.effects:
        effect = one.effect
        told[one.target, effect.factor, effect.level] = effect.comparison.ratio
    assert len(told) == 2 * (1 + 1 + 2)
    for (_, factor, level), ratio in told.items():
        # A ratio of medians would be off by the drift of 4 between rounds; pairing cancels it.
        assert ratio is not None
        assert ratio.value == pytest.approx(EFFECT[factor][level], rel=0.02)  # 5 sigma of 0.01


def test_intervals_of_main_effects_cover_the_truth() -> None:
    covered = total = 0
    for seed in range(12):
        found = built(CROSSED, drifting(0.05, seed))
        for one in found.effects:
            total += 1
            truth_of = EFFECT[one.effect.factor][one.effect.level]
            covered += covers(one.effect.comparison.ratio, truth_of)
    # 96 intervals at 95 %: 84 or fewer would happen once in 1,000 times.
    assert total == 96
    assert covered >= 85


def test_alternatives_are_held_against_the_baseline_of_their_round() -> None:
    text = CROSSED + "design: {baseline: {wait: 0ns}}\n"
    found = built(text, drifting(0.01))
    # 12 settings on two targets; a third of them is the baseline itself.
    assert len(found.comparisons) == 16
    for one in found.comparisons:
        assert one.baseline_target == one.target
        assert set(one.changed) == {"wait"}
        expected = EFFECT["wait"][one.factors["wait"]]
        assert one.comparison.ratio is not None
        assert one.comparison.ratio.value == pytest.approx(expected, rel=0.05)
        assert one.comparison.n_a == 10


def test_a_target_may_be_the_baseline() -> None:
    found = built(CROSSED + "design: {baseline: {target: one}}\n", drifting(0.005))
    assert len(found.comparisons) == 12
    for one in found.comparisons:
        assert (one.target, one.baseline_target) == ("two", "one")
        assert one.comparison.ratio is not None
        assert one.comparison.ratio.value == pytest.approx(1.1, rel=0.02)


A_A = """
name: control
repeat: {min: 12, max: 12}
benchmarks:
  - benchmark: "null"
    factors: {samples: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}
design: {a_a: true}
"""


def test_equal_arms_differ_as_often_as_chance_says() -> None:
    outside = cells = 0
    for seed in range(8):
        rng = random.Random(seed)

        def sample(setting: Setting, number: int, target: str) -> list[Sample]:
            return [Sample("null_ns", 100 + 10 * number + rng.gauss(0, 2))]  # noqa: B023

        found = built(A_A, sample, rounds=12)
        assert found.controls is not None
        # A cell whose rounds depend on each other by chance has no interval.
        assert 8 <= found.controls.cells <= 10
        assert found.controls.expected == pytest.approx(0.05 * found.controls.cells)
        outside += found.controls.outside
        cells += found.controls.cells
    # 80 intervals at 95 %: more than 12 would happen once in 10,000 times.
    assert 70 <= cells <= 80
    assert outside <= 12


def test_arms_that_do_differ_are_told() -> None:
    rng = random.Random(5)

    def sample(setting: Setting, number: int, target: str) -> list[Sample]:
        return [Sample("null_ns", (100 if setting.arm == "a" else 103) + rng.gauss(0, 0.5))]

    found = built(A_A, sample, rounds=12)
    assert found.controls is not None
    assert found.controls.outside == 10
    assert "too many" in found.controls.sentence


FRACTION = """
name: fraction
repeat: {min: 10, max: 10}
benchmarks:
  - benchmark: "null"
    factors: {samples: [1, 2], seed: [0, 1], value: [1, 2], wait_ns: [0, 1]}
design: {fraction: 1/2}
"""


def test_a_regular_fraction_tells_every_main_effect_and_its_aliases() -> None:
    ratios = {"samples": 1.2, "seed": 1.0, "value": 0.7, "wait_ns": 1.4}
    rng = random.Random(1)

    def sample(setting: Setting, number: int, target: str) -> list[Sample]:
        value = 50.0 * (1 + number)
        for name, ratio in ratios.items():
            low = {"samples": 1, "seed": 0, "value": 1, "wait_ns": 0}[name]
            value *= 1.0 if setting.factors[name] == low else ratio
        return [Sample("null_ns", value * (1 + rng.gauss(0, 0.01)))]

    found = built(FRACTION, sample)
    (design,) = found.designs
    assert (design.kind, design.resolution, design.settings) == ("regular", 4, 8)
    assert "samples is confounded with seed x value x wait_ns" in design.confounded
    told = {one.effect.factor: one.effect.comparison.ratio for one in found.effects}
    for name, ratio in ratios.items():
        assert told[name] is not None
        assert told[name].value == pytest.approx(ratio, rel=0.02)


def test_a_crossing_with_holes_tells_no_main_effects_and_why() -> None:
    text = CROSSED + "design: {exclude: [{wait: 2us, seed: 1}]}\n"
    found = built(text, drifting(0.01))
    assert found.effects == ()
    assert any("combinations are excluded" in note for note in found.notes)


NESTED = """
name: nested
lab: {name: n, hosts: {h: {}}}
targets: [{name: h, kind: lab}]
benchmarks: [{benchmark: "null"}]
design: {nest: {instance: 3, boot: 2, rounds: 4}}
"""


def test_variance_is_split_by_level(tmp_path: Path) -> None:
    of_instance = [100.0, 110.0, 95.0]
    within = [0.0, 2.0, -2.0, 0.0]

    def sample(setting: Setting, number: int, target: str) -> list[Sample]:
        boot = (max(number, 1) - 1) // 4
        return [Sample("null_ns", of_instance[boot // 2] + within[(number - 1) % 4])]

    found = stored(tmp_path, NESTED, sample, rounds=24)
    (one,) = found.components
    shares = {part.level: part for part in one.nested.components}
    assert list(shares) == ["instance", "boot", "round"]
    # Boots of an instance agree exactly: less than the rounds alone would give.
    assert shares["boot"].negative
    assert shares["round"].variance == pytest.approx(48 / 18)
    assert shares["instance"].share > 0.9
    assert one.nested.mean.n == 3


def test_rounds_that_one_side_lacks_are_left_out(tmp_path: Path) -> None:
    from nephoscope.store import StoredRun

    run: StoredRun = make_run(
        tmp_path, CROSSED + "design: {baseline: {wait: 0ns}}\n", drifting(0.01)
    )
    lost = sorted(unmerge(run).trials_path.glob("r0003-*.parquet"))[0]
    lost.unlink()
    found = analyse_run.build(run).part(Experiment)
    assert found is not None
    counts = sorted({one.comparison.n_a for one in found.comparisons})
    assert counts == [9, 10]
    assert {one.effect.rounds_left_out for one in found.effects} == {0, 1}


def test_an_interference_factor_above_one_is_worse_for_times_and_for_rates() -> None:
    ratio = Estimate(0.8, 0.7, 0.9, 0.95, 10, "ratio", "")
    time = turned(ratio, Better.LOWER)
    rate = turned(ratio, Better.HIGHER)
    assert time is not None
    assert (time.value, time.low, time.high) == (0.8, 0.7, 0.9)
    assert rate is not None
    assert (rate.value, rate.low, rate.high) == pytest.approx((1.25, 1 / 0.9, 1 / 0.7))
    assert turned(ratio, Better.NONE) is None
    one_sided = turned(Estimate(0.8, None, 0.9, 0.95, 4, "ratio", ""), Better.HIGHER)
    assert one_sided is not None
    assert (one_sided.low, one_sided.high) == (pytest.approx(1 / 0.9), None)


QUIET_AND_NOISY = """
name: noisy
repeat: {min: 8, max: 8}
benchmarks: [{benchmark: "null"}]
factors:
  wait: {path: benchmarks.0.params.wait_ns, levels: [0, 10, 20]}
  seed: {path: benchmarks.0.params.seed, levels: [0, 1]}
design:
  exclude: [{wait: 0, seed: 1}]
  baseline: {wait: 0}
"""


def test_one_quiet_alternative_is_the_baseline_of_all() -> None:
    def sample(setting: Setting, number: int, target: str) -> list[Sample]:
        noise = {0: 1.0, 10: 1.1, 20: 1.25}[setting.factors["wait"]]
        return [Sample("null_ns", 10.0 * number * noise)]

    found = built(QUIET_AND_NOISY, sample, rounds=8)
    told = {
        (one.factors["wait"], one.factors["seed"]): one.interference.value
        for one in found.comparisons
        if one.interference
    }
    assert told == pytest.approx({(10, 0): 1.1, (10, 1): 1.1, (20, 0): 1.25, (20, 1): 1.25})
