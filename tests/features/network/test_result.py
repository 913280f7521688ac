"""The paths of a stored run whose samples are set."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.features.network.made import PLAN, sampled
from tests.results.made import make_run

from nephoscope.features.network.result import NetworkPaths
from nephoscope.report import report_files
from nephoscope.results import analyse_run


def test_paths_findings_and_section(tmp_path: Path) -> None:
    run = make_run(tmp_path, PLAN, sampled, rounds=3)
    result = analyse_run.build(run)
    found = result.part(NetworkPaths)
    assert found is not None
    probes, throughput = sorted(found.paths, key=lambda path: path.benchmark)
    assert (throughput.peer, throughput.trials, throughput.shaped_trials) == ("far", 3, 3)
    bucket = throughput.analysis.token_bucket
    assert bucket is not None
    assert round(bucket.bucket_bytes) == 10_000_000
    assert throughput.analysis.tcp is not None
    assert throughput.analysis.tcp.efficiency_ratio == 0.99
    voice = probes.analysis.voice
    assert voice is not None
    assert voice.lost_ratio == pytest.approx(0.2, abs=0.01)
    assert [one.verdict for one in voice.limits] == ["acceptable", "exceeded", "exceeded"]
    ids = {one.id for one in result.findings}
    assert {"token_bucket", "poor_calls"} <= ids
    page = report_files.write(result, run.report_path).markdown.read_text(encoding="utf-8")
    assert "Network paths" in page
    assert "token bucket" in page
