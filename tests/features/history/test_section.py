"""The section of a history: lead, charts with gaps, items, forecasts; hostile names are text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.features.history.drawn import DAY_S, START_S, series

from nephoscope.features.history import series as module
from nephoscope.features.history.records import ForecastTest, History
from nephoscope.features.history.result import HistorySettings, analyse
from nephoscope.features.history.section import section
from nephoscope.report import html_output, markdown_output, terminal_output
from nephoscope.report.blocks import Chart, Items


def history(**changes: object) -> History:
    level = np.r_[np.full(60, 100.0), np.full(30, 120.0)]
    values = level * (1 + 0.01 * np.random.default_rng(1).standard_normal(90))
    at_s = START_S + DAY_S * np.r_[np.arange(30), np.arange(40, 100)]
    facts = {0: {"kernel": "6.1.0"}, 60: {"kernel": "6.1.9"}}
    drawn = series(values, at_s=at_s, facts=facts, target="<script>alert(1)</script>\u202e")
    found = analyse(drawn, HistorySettings())
    return replace(
        History("null_ns", 0.05, 0.03, 0.95, (found,), ("Run x is left out.",)), **changes
    )


def test_change_gap_and_next_step_are_shown() -> None:
    page = section(history(back_test=ForecastTest(0.9, 0, None)))
    text = terminal_output.render(page.title, [page], colour=False, width=100)
    assert "1 change point in 1 series of 90 runs; 1 regression." in text
    assert "Add `--confirm run-0060`" in " ".join(text.split())
    assert "kernel: 6.1.0 → 6.1.9." in text
    assert text.count("The merged records differ in: kernel (6.1.0; 6.1.9).") == 1
    assert "Run x is left out." in text
    assert "No past week can be predicted" in text
    (chart,) = [block for block in page.blocks if isinstance(block, Chart)]
    assert [len(part["x"]) for part in chart.figure["data"]] == [30, 60]
    labels = [one["text"] for one in chart.figure["layout"]["annotations"]]
    assert labels == ["worse, kernel"]
    assert chart.figure["layout"]["xaxis"]["type"] == "date"
    (items,) = [b for b in page.blocks if isinstance(b, Items) and not b.folded][:1]
    assert items.items[0].tone == "warning"


def test_the_order_of_the_points_is_decided_once_for_a_series(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decided = []

    def have_times(at_s: Sequence[float]) -> bool:
        decided.append(len(at_s))
        return True

    analysed = replace(history(), series=(analyse(series(np.full(50, 100.0)), HistorySettings()),))
    monkeypatch.setattr(module, "have_times", have_times)
    assert section(analysed).blocks
    assert decided == [50]


def test_names_are_text_in_every_form() -> None:
    page = section(history())
    html = html_output.render("History", "", [page])
    assert "<script>alert(1)" not in html
    assert "\u202e" not in html + markdown_output.render("History", [page])
