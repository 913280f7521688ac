"""The experiment's section: every effect with its interval, in all four forms of the report."""

from __future__ import annotations

import json
import random
import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from tests.results.made import run_data

from nephoscope import catalog
from nephoscope.core.model import Better, Consistency, MetricResult, RunResult
from nephoscope.features.experiments import answer
from nephoscope.features.experiments.records import Experiment
from nephoscope.features.experiments.result import analyse
from nephoscope.measure import plans
from nephoscope.measure.plans.files.load import from_text
from nephoscope.report import feature_sections as sections
from nephoscope.report import report_files, wording
from nephoscope.report.blocks import Chart, Sentence
from nephoscope.stats import compare
from nephoscope.stats.statistics import estimates
from report import made

PLAN = """
name: e
lab: {name: l, hosts: {h: {}, g: {}}}
targets: [{name: h, kind: lab}]
benchmarks:
  - {benchmark: "null", factors: {samples: [1, 2], seed: [0, 1]}}
factors:
  cap: {path: lab.hosts.h.cpu.cap, levels: [50%, 100%]}
"""
TRUTH = {"samples": {1: 1.0, 2: 1.2}, "seed": {0: 1.0, 1: 1.0}, "cap": {"50%": 2.0, "100%": 1.0}}


def result_of(design: str, rounds: int = 8, skewed_arm: float = 1.0) -> RunResult:
    """The made survey with an experiment in it whose effects are TRUTH."""
    known = catalog.load()
    plan = from_text(f"{PLAN}design: {design}\n", "plan.yaml", {}, known)
    settings = plans.expand(plan, known)
    rng = random.Random(1)
    lines = []
    for setting in settings:
        effect = skewed_arm if setting.arm == "b" else 1.0
        for name, levels in TRUTH.items():
            effect *= levels[setting.factors[name]]
        values = tuple(1e6 * effect * (1 + rng.gauss(0, 0.005)) for _ in range(rounds))
        lines.append(
            MetricResult(
                benchmark="null",
                metric="null_ns",
                target="h",
                factors=setting.factors,
                better=Better.LOWER,
                estimate=estimates.median(values, unit="ns"),
                consistency=Consistency(None, None, None, None, None, "unknown"),
                headline=True,
                trial_values=values,
                rounds=tuple(range(1, rounds + 1)),
            )
        )
    manifest = {
        "plan": plans.plan_values(plan),
        "settings": json.loads(json.dumps([asdict(setting) for setting in settings])),
    }
    found = analyse(run_data((), lines, manifest))
    survey = made.result()
    return replace(
        survey,
        metrics=(*survey.metrics, *lines),
        parts=(*survey.parts, found),
    )


def forms(result: RunResult, folder: Path) -> dict[str, str]:
    paths = report_files.write(result, folder)
    assert json.loads(paths.json.read_text())["experiment"]["designs"]
    return {
        "html": paths.html.read_text(encoding="utf-8"),
        "markdown": paths.markdown.read_text(encoding="utf-8").replace("\\", ""),
        "terminal": report_files.terminal(result, colour=False, width=79),
    }


DESIGNS = ["{baseline: {cap: 100%}}", "{a_a: true, baseline: {cap: 100%}}", "{fraction: 1/2}"]


@pytest.mark.parametrize("design", DESIGNS)
def test_every_effect_and_comparison_stands_everywhere(design: str, tmp_path: Path) -> None:
    result = result_of(design)
    found = result.part(Experiment)
    assert found is not None
    assert len(found.effects) == 3
    for name, text in forms(result, tmp_path).items():
        dense = re.sub(r"\s", "", text)
        ratios = [one.effect.comparison.ratio for one in found.effects]
        ratios += [one.interference for one in found.comparisons]
        for ratio in ratios:
            assert ratio is not None
            plain = replace(ratio, unit="none")
            assert wording.value_text(plain) in text, name
            assert re.sub(r"\s", "", wording.interval_text(plain)) in dense, name
        for one in found.designs:
            for sentence in one.confounded:
                assert re.sub(r"\s", "", sentence) in dense, name
        if found.controls:
            assert re.sub(r"\s", "", found.controls.sentence) in dense, name


def test_the_chart_has_a_dot_with_its_interval_for_each_level() -> None:
    result = result_of("{baseline: {cap: 100%}}")
    section = next(one for one in sections.build_all(result) if one.id == "experiment")
    charts = {block.id: block for block in section.blocks if isinstance(block, Chart)}
    dots = charts["experiment-factors"].figure["data"][0]
    assert dots["x"] == pytest.approx([1.2, 1.0, 2.0], rel=0.02)
    assert all(high > 0 for high in dots["error_x"]["array"])
    assert charts["experiment-factors"].figure["layout"]["shapes"][0]["x0"] == 1
    factors = charts["experiment-baseline"].figure["data"][0]["x"]
    assert factors == pytest.approx([2.0] * 4, rel=0.02)


def test_arms_that_differ_are_a_warning() -> None:
    fine = sections.build_all(result_of("{a_a: true}"))
    odd = sections.build_all(result_of("{a_a: true}", skewed_arm=1.1))
    told = {}
    for name, built in (("fine", fine), ("odd", odd)):
        section = next(one for one in built if one.id == "experiment")
        told[name] = [item for block in section.blocks for item in getattr(block, "items", ())]
    assert [item.tone for item in told["fine"]][:1] == ["info"]
    assert [item.tone for item in told["odd"]][:1] == ["warning"]


def test_components_of_variance_are_told_with_what_they_rest_on(tmp_path: Path) -> None:
    result = result_of("{nest: {instance: 2, boot: 2, rounds: 2}}")
    text = " ".join(forms(result, tmp_path)["terminal"].split())
    assert "Components of variance" in text
    assert "metric instances boots rounds mean interval n" in text


def test_too_few_rounds_say_so_instead_of_a_number(tmp_path: Path) -> None:
    result = result_of("{baseline: {cap: 100%}}", rounds=3)
    found = result.part(Experiment)
    assert found is not None
    assert {one.comparison.verdict.word for one in found.comparisons} == {"inconclusive"}
    assert "| none | 3 |" in forms(result, tmp_path)["markdown"]


def test_an_interval_without_one_and_an_inconclusive_verdict_are_explained() -> None:
    a, b = np.array([1.0, 1.1, 1.05, 0.95, 1.02, 0.98, 1.0]), np.full(7, 2.0)
    alone = compare.paired(a, b, unit="s", better=Better.LOWER)
    among_ten = compare.over_report([alone] * 10)[0]
    assert (alone.verdict.word, among_ten.verdict.word) == ("worse", "inconclusive")
    assert answer._sentence("x", "b", "a", alone).endswith("times the value of a: worse.")
    text = answer._sentence("x", "b", "a", among_ten)
    assert "inconclusive among all comparisons (p = 0.16 after Holm)" in text


def test_the_summary_answers_with_the_largest_effects() -> None:
    summary = sections.build_all(result_of(DESIGNS[0]))[0]
    answers = [block.text for block in summary.blocks if isinstance(block, Sentence) and block.lead]
    assert "cap 50% gives 2.0" in answers[0]
    assert answers[0].endswith("times the value of cap 100%: worse.")
    assert "samples 2 gives 1.19" in answers[1]
    assert answers[2].endswith(".")
