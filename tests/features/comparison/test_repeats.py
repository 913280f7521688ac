"""Repeated runs of one plan: the run is the unit of replication."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests import schemas
from tests.results.made import NULL_PLAN, make_run

from nephoscope.core import documents
from nephoscope.core.documents import schema_of
from nephoscope.core.model import Sample, Setting
from nephoscope.features.comparison.repeats import RepeatedRuns, analyse_repeats
from nephoscope.features.comparison.terminal import print_repeats
from nephoscope.results import analyse_run


def level(value: float) -> Callable[[Setting, int, str], Sequence[Sample]]:
    def sampler(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        return [Sample("null_ns", value * (1 + (number * 7 % 11 - 5) / 1000))]

    return sampler


def repeated(folder: Path, values: Sequence[float]) -> RepeatedRuns:
    runs = [make_run(folder, NULL_PLAN, level(value)) for value in values]
    return analyse_repeats([analyse_run.build(run) for run in runs])


def test_the_interval_is_that_of_the_runs_and_not_of_the_trials(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = repeated(tmp_path, [90, 95, 100, 105, 110])
    (line,) = found.metrics
    sd = float(np.std(np.log(line.medians), ddof=1))
    assert line.run_to_run == pytest.approx(sd)  # five runs: nothing is assumed
    assert line.estimate.n == 5
    ratio = line.estimate.high / line.estimate.value
    assert ratio == pytest.approx(math.exp(2.7764 * sd / math.sqrt(5)), rel=1e-4)
    schemas.validate(documents.versioned(found), schema_of(RepeatedRuns, "repeats"))
    print_repeats(found)
    printed = capsys.readouterr().out
    assert "5 runs: " in printed
    assert f"{100 * sd:.2g} %" in printed


def test_few_runs_take_the_assumed_variation_into_the_interval(tmp_path: Path) -> None:
    (line,) = repeated(tmp_path, [100, 100.1]).metrics
    assert line.run_to_run > 0.01
    assert "assumed" in line.estimate.method


def test_a_metric_without_logarithm_is_excluded_with_a_sentence(tmp_path: Path) -> None:
    found = repeated(tmp_path, [0, 100])
    assert found.metrics == ()
    assert "1 metrics are excluded" in found.warnings[0]
