"""The assumed variance between runs: its fit, and what the data sets of the package give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nephoscope.features.comparison import prior
from nephoscope.stats.statistics.values import percent

ROOT = Path(__file__).resolve().parents[3]


def test_the_fit_finds_a_distribution_that_is_known() -> None:
    rng = np.random.default_rng(1)
    sd, df, runs = 0.03, 5.0, 9
    variances = df * sd**2 / rng.chisquare(df, 4000) * rng.chisquare(runs - 1, 4000) / (runs - 1)
    found_sd, found_df = prior.fit(list(variances), [runs - 1] * 4000)
    assert found_sd == pytest.approx(sd, rel=0.05)
    assert found_df == pytest.approx(df, rel=0.15)


def test_equal_variances_do_not_give_infinite_certainty() -> None:
    assert prior.fit([1e-4] * 10, [8] * 10) == (pytest.approx(0.01, rel=0.1), prior.MAX_DF)


def test_every_benchmark_has_a_prior_that_names_its_data_set() -> None:
    for benchmark in ("cpu.pi", "mem.stream", "disk.io", "net.rtt", "null", "sim.queue"):
        found = prior.prior_of(benchmark, "per_s")
        assert found.sd >= 0.001
        assert prior.MIN_DF <= found.df <= prior.MAX_DF
        assert "repeated surveys of 20" in found.source
    assert prior.prior_of("null", "null_ns") == prior.priors()[prior.ALL]
    assert prior.class_of("disk.io", "disk_latency_p999_ns") == "tail latency"
    assert prior.class_of("disk.io", "disk_latency_p90_ns") == "disk"
    assert prior.class_of("cpu.gaps", "gaps_per_s") == "scheduling"


def test_the_explanation_shows_the_priors() -> None:
    text = (ROOT / "docs" / "explanation" / "how-we-measure.md").read_text(encoding="utf-8")
    for name, found in prior.priors().items():
        metrics = found.source.split(maxsplit=1)[0]
        assert f"| {name} | {percent(found.sd, 2)} | {found.df:.2g} | {metrics} |" in text


def test_the_data_sets_are_dated_and_say_how_they_came_about() -> None:
    for data in prior.data_sets():
        assert data["notes"]
        assert data["machine"]["cpus"]
        assert len(data["started"]) >= 8
        assert all(len(line["medians"]) == len(data["started"]) for line in data["lines"])
