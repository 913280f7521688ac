from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.core.model import Sample
from nephoscope.store import query
from nephoscope.store.grouped_samples import sorted_within

from .factory import SPEC, new_run, record

values = st.integers(-3, 3).map(float) | st.sampled_from([0.0, -0.0, 0.5])
groups = st.lists(st.lists(st.tuples(values, st.integers(1, 3)), min_size=1), min_size=1)


@pytest.mark.parametrize("long", [1, 10_000])
@given(rows=groups)
def test_groups_are_sorted_as_rows_are(rows, long):
    import nephoscope.store.grouped_samples as module

    columns = [
        np.array(column) for column in zip(*(row for own in rows for row in own), strict=True)
    ]
    begins = np.cumsum([0, *map(len, rows)])
    before, module._LONG = module._LONG, long
    try:
        sorted_values, counts = sorted_within(*columns, begins)
    finally:
        module._LONG = before
    expected = [row for own in rows for row in sorted(own, key=lambda row: row[0])]
    assert list(map(repr, sorted_values.tolist())) == [repr(value) for value, _ in expected]
    assert counts.tolist() == [count for _, count in expected]


def test_rows_in_any_order_are_those_of_their_trial_and_metric(tmp_path: Path) -> None:
    run, settings = new_run(tmp_path)
    rng = np.random.default_rng(2)
    expected = {}
    for number in range(1, 4):
        # More rows than are numbered in Python, and metrics that take turns.
        scalars, latencies = rng.permutation(3000) + 1.0, rng.integers(1, 50, 3000)
        rows = [
            sample
            for value, latency in zip(scalars.tolist(), latencies.tolist(), strict=True)
            for sample in (Sample("null_ns", value), Sample("null_latency_ns", float(latency), 2))
        ]
        trial = record(settings[0], number, number)
        run.append(trial, rows, SPEC)
        expected[trial.key.name] = (1500.5, np.unique(latencies, return_counts=True))
    run.finish("finished")
    medians, histograms = query.medians_and_histograms(run)
    assert medians == query.trial_medians(run)
    assert [(row.trial, row.value) for row in medians] == [
        (trial, median) for trial, (median, _) in expected.items()
    ]
    for row in histograms:
        distinct, counts = expected[row.trial][1]
        assert row.values.tolist() == distinct.tolist()
        assert row.counts.tolist() == (2 * counts).tolist()
    assert query.medians_and_histograms(run, lambda *_: False) == ([], [])
