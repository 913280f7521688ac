"""Compositions, budgets and promises: the vectors of the method."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.features.sla.made import agreement, refused, run

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("expression", "availability", "low", "high"),
    [
        ("parallel(99.5%, 99.5%)", 0.999975, 0.995, 1.0),
        ("series(99.5%, 99.5%)", 0.990025, 0.99, 0.995),
        ("of(2, 99.5%, 99.5%, 99.5%)", 0.99992525, 0.9925, 1.0),
        ("99.9%", 0.999, 0.999, 0.999),
        ("series(99.9%, parallel(99%, 99%))", 0.999 * 0.9999, 0.989, 0.999),
    ],
)
def test_compositions(
    expression: str, availability: float, low: float, high: float, capsys: Capture
) -> None:
    document = run(capsys, "what-if", expression, code=0)
    assert document["availability"] == pytest.approx(availability, abs=1e-12)
    assert document["low"] == pytest.approx(low)
    assert document["high"] == pytest.approx(high)
    assert "independently" in document["assumption"]


@pytest.mark.parametrize(
    "expression",
    [
        *("", "series(", "series()", "of(4, 9%, 9%)", "of(9%)", "0.5 0.5", "xor(1, 0)", "2", "a$b"),
        "series(" * 200 + "1" + ")" * 200,
        f"of({'9' * 5000}, 9%)",
    ],
)
def test_what_is_no_composition(expression: str, capsys: Capture) -> None:
    assert "is no composition" in refused(capsys, "what-if", expression)


def test_budgets(capsys: Capture) -> None:
    plan = run(capsys, "budget", "99.9%", "--burn-rate", "14.4")
    assert plan["allowed_s"] == pytest.approx(43.2 * 60)
    assert plan["exhausted_after_s"] == pytest.approx(50 * 3600)
    assert plan["budget_used_in_1h"] == pytest.approx(0.02)
    assert plan["alert_factors"] == pytest.approx([14.4, 6, 1])
    assert plan["least_n"] == 2995
    assert run(capsys, "budget", "99.99%")["least_n"] == 29_956
    durable = run(capsys, "budget", "99.9%", "--years", "10")
    assert durable["over_years"] == pytest.approx(0.999**10)
    for text in ("ninety", "nan", "sNaN", "inf", "1e-999999"):
        assert "is no share" in refused(capsys, "budget", text)


def test_promises(tmp_path: Path, capsys: Capture) -> None:
    # Ten days of minutes; one has 10 bad minutes (99.31 %), one has 1 unknown.
    ok = np.ones(14_400, dtype=int)
    ok[2000:2010] = 0
    rows = [f"{86_400 * 20_000 + 60 * at},{value}" for at, value in enumerate(ok) if at != 9000]
    (tmp_path / "e.csv").write_text("time,ok\n" + "\n".join(rows) + "\n")
    credits = "credits: [{below: 99.5%, credit: 20%}]"
    terms = agreement(
        tmp_path / "a.yaml", f"measure: availability, target: 99.5%, {credits}", "period: day\n"
    )
    words = ["promise", terms, tmp_path / "e.csv", "--bill", "10"]
    (service,) = run(capsys, *words)["services"]
    assert service["periods"] == 10
    assert service["worst"] == pytest.approx(1 - 10 / 1440)
    assert service["best"] == 0.99
    met = {row["objective"]: row["met"] for row in service["candidates"]}
    assert (met[1.0], met[0.9995], met[0.999], met[0.99]) == (8, 8, 9, 10)
    assert service["expected_credit"] == pytest.approx(10 * 0.2 / 10)
    chance = next(r["next_period"] for r in service["candidates"] if r["objective"] == 0.99)
    assert chance["low"] == pytest.approx(0.05 ** (1 / 10))
