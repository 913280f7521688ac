"""Burst credits in stored runs: the series of a load, and the CPU trials of a survey."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nephoscope.core.model import Better
from nephoscope.features.credits import result
from nephoscope.features.credits.findings import on_credit
from nephoscope.stats.target_evidence import TargetEvidence, TargetTrials


@dataclass
class _Line:
    benchmark: str
    trial_values: tuple[float, ...]
    target: str = "vm"
    headline: bool = True
    better: Better = Better.HIGHER
    simulated: bool = False
    rounds: tuple[int, ...] = field(default=())

    def __post_init__(self) -> None:
        self.rounds = tuple(range(1, len(self.trial_values) + 1))


def _data(factor_of_round: Any) -> Any:
    draws = np.random.default_rng(1)
    lines, records = [], []
    for place, (benchmark, level) in enumerate(
        (("cpu.pi", 1e4), ("cpu.hash", 5e8), ("app.x", 3.0))
    ):
        values = [level * factor_of_round(n) * draws.normal(1, 0.01) for n in range(1, 21)]
        lines.append(_Line(benchmark, tuple(values)))
        records += [
            SimpleNamespace(
                benchmark=benchmark,
                key=SimpleNamespace(target="vm", round=number, name=f"{benchmark}-{number}"),
                started_at=1e9 + 30 * number + 5 * place,
            )
            for number in range(1, 21)
        ]
    return SimpleNamespace(
        metrics=lines, records=records, benchmarks=frozenset({"cpu.pi"}), confidence=0.95
    )


def test_the_cpu_trials_of_a_survey_show_a_machine_on_credit() -> None:
    record = result.analyse(_data(lambda number: 1.0 if number <= 12 else 0.4))
    assert record is not None
    (series,) = record.series
    assert series.analysis.is_on_credit
    assert series.analysis.knee is not None
    assert series.analysis.knee.value == pytest.approx(12 * 30, abs=35)
    case = TargetEvidence("vm", {}, (), TargetTrials(), parts=(record,))
    (finding,) = on_credit(case)
    assert finding.sentence.startswith("vm is on credit (CPU benchmarks): after ")
    assert "40 % of those before" in finding.sentence


@pytest.mark.parametrize("low", [1.0, 0.9])
def test_a_survey_of_a_steady_machine_states_nothing(low: float) -> None:
    assert result.analyse(_data(lambda number: 1.0 if number <= 12 else low)) is None
