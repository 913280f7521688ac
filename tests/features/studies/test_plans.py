"""The studies' plans: they load at both scales, and every comparison finds what it asks for."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from nephoscope import catalog
from nephoscope.core.model import Setting, Shape
from nephoscope.features.studies import catalogue
from nephoscope.features.studies.catalogue import ReferenceStudy
from nephoscope.features.studies.comparison import tables
from nephoscope.features.studies.definition.selectors import MeasuredFigure, MetricSelection
from nephoscope.features.studies.definition.study import SCALES, Part, StudyComparison
from nephoscope.measure import plans
from nephoscope.results.names import percentile_metric

HERE = [
    (study, part) for study in catalogue.load_all() for part in study.definition.parts if part.plan
]
PARTS = pytest.mark.parametrize(
    ("study", "part"), HERE, ids=[f"{study.name}-{part.name}" for study, part in HERE]
)
WITHIN = {
    *("direction", "kernel", "type", "operation", "vector_bytes", "streams"),
    *("load", "phase", "cpu", "process"),
    *("region", "vm", "vcpu"),
    *("request", "limit_ns", "probe"),
    *("cache", "client", "object_bytes"),
}
"""Factors of samples, and of the rows of loads, which no plan varies."""
COMPARED = [
    (study, part, mapping)
    for study, part in HERE
    for mapping in part.comparisons
    if mapping.measured is not None
]


@cache
def settings_of(study: str, part: str) -> list[Setting]:
    """The settings of a part's plan at the small scale: 200 tests ask for those of 20 plans."""
    (found,) = [one for of, one in HERE if (of.name, one.name) == (study, part)]
    return plans.expand(catalogue.plan_of(catalogue.load(study), found, "small"), catalog.load())


def test_every_study_has_a_plan_under_that_name() -> None:
    for study in catalogue.load_all():
        assert (study.path / "plan.yaml").is_file()
        listed = {part.plan for part in study.definition.parts if part.plan}
        assert listed == {path.name for path in study.path.glob("plan*.yaml")}


@PARTS
@pytest.mark.parametrize("scale", SCALES)
def test_the_plan_loads_and_has_a_schedule(study: ReferenceStudy, part: Part, scale: str) -> None:
    plan = catalogue.plan_of(study, part, scale)
    assert plan.name in study.plan_names(part)
    assert plan.name == f"{study.name}-{part.name}" + ("-paper" if scale == "paper" else "")
    assert plans.expand(plan, catalog.load())
    assert plan.repeat.min >= 6 or scale == "paper", "under 6 a median has no interval"


@PARTS
def test_the_file_itself_is_the_small_scale(study: ReferenceStudy, part: Part) -> None:
    alone = plans.load(study.path / part.plan)
    assert plans.plan_hash(alone) == plans.plan_hash(catalogue.plan_of(study, part, "small"))


def test_servers_that_a_hook_starts_outlive_it() -> None:
    """`command` ends what it left behind, unless it is to keep it."""
    started = []
    for study, part in HERE:
        for hook in catalogue.plan_of(study, part, "small").before:
            if "-server " in str(hook.params.get("argv")):
                started.append(part.name)
                assert hook.params.get("keep_children") is True, (study.name, part.name)
    assert set(started) >= {"memory", "ycsb", "game"}


@pytest.mark.parametrize(
    ("study", "part", "mapping"),
    COMPARED,
    ids=[f"{study.name}-{part.name}-{mapping.id}" for study, part, mapping in COMPARED],
)
def test_every_comparison_asks_for_what_the_plan_measures(
    study: ReferenceStudy, part: Part, mapping: StudyComparison
) -> None:
    ours = mapping.measured
    assert ours is not None
    settings = settings_of(study.name, part.name)
    picks = [pick for pick in (ours.numerator, ours.denominator) if pick] or list(
        ours.order.values()
    )
    for pick in picks or [MetricSelection()]:
        _asks_for_what_is_measured(ours, pick, settings)


@PARTS
def test_every_control_asks_for_what_the_plan_measures(study: ReferenceStudy, part: Part) -> None:
    settings = settings_of(study.name, part.name)
    for control in part.controls:
        _asks_for_what_is_measured(control.measured, MetricSelection(), settings)


@PARTS
def test_every_cell_and_every_curve_asks_for_what_the_plan_measures(
    study: ReferenceStudy, part: Part
) -> None:
    settings = settings_of(study.name, part.name)
    for sheet in part.tables:
        for row in sheet.rows.values():
            for column in sheet.columns.values():
                if not (row.why or column.why):
                    _asks_for_what_is_measured(*tables.selection_of(sheet, row, column), settings)
    for prediction in part.predictions:
        for line in prediction.lines.values():
            _asks_for_what_is_measured(prediction.measured, line.measured, settings)
            _asks_for_what_is_measured(prediction.simulated, line.simulated, settings)
    for drawing in part.figures:
        picks: list[MetricSelection] = []
        for curve in drawing.curves.values():
            levels = [{drawing.factor: level} for level in curve.levels or drawing.levels] or [{}]
            picks += [
                MetricSelection.model_validate(
                    {**curve.model_dump(exclude={"levels"}), "factors": {**curve.factors, **level}}
                )
                for level in levels
            ]
        for pick in picks:
            _asks_for_what_is_measured(drawing.measured, pick, settings)


def _asks_for_what_is_measured(
    ours: MeasuredFigure, pick: MetricSelection, settings: list[Setting]
) -> None:
    benchmark = pick.benchmark or ours.benchmark
    spec = catalog.load().benchmark(benchmark)
    metric = pick.metric or ours.metric
    percentiles = {
        percentile_metric(one.id, one.unit, quantile)
        for one in spec.metrics
        for quantile in (0.5, 0.9, 0.99)
        if one.shape is Shape.HISTOGRAM
    }
    assert metric in {one.id for one in spec.metrics} | percentiles
    target = pick.target or ours.target
    factors: dict[str, Any] = {**ours.factors, **pick.factors}
    fitting = [
        one
        for one in settings
        if _measures(one, benchmark, target, str(factors.get("load", "")))
        and all(
            str(one.factors[name]) in (str(level), f"[{level}]") or one.factors[name] == level
            for name, level in factors.items()
            if name in one.factors
        )
    ]
    assert fitting, f"no setting of {benchmark} on '{target}' with {factors}"
    # A list of one is a level of a parameter that takes a list; its samples name the one.
    # What is no factor of the plan is one of the samples (kernel, type, direction, bytes).
    within = {name for name in factors if name not in fitting[0].factors}
    assert within <= WITHIN


def _measures(one: Setting, benchmark: str, target: str, load: str) -> bool:
    """Whether the setting's trials, or a load beside them, run the benchmark on the target."""
    if load:
        return any(
            (beside.name, beside.benchmark) == (load, benchmark) and target in beside.targets
            for beside in one.backgrounds
        )
    return one.benchmark == benchmark and (not target or target in one.targets)
