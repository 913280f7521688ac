"""A year of one-minute events of 100 services: CPU time and memory of all verdicts and credits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MINUTES, SERVICES = 525_600, 100
START_S = 1_672_531_200  # 2023-01-01


@pytest.mark.slow
@pytest.mark.alone
def test_a_year_of_100_services(tmp_path: Path) -> None:
    randomness = np.random.default_rng(1)
    times = pa.array(START_S + 60 * np.arange(MINUTES, dtype=np.int64))
    writer = None
    bad = []
    for number in range(SERVICES):
        ok = randomness.random(MINUTES) > 0.0002
        bad.append(int((~ok).sum()))
        names = pa.array(np.full(MINUTES, f"svc{number:03d}")).dictionary_encode()
        table = pa.table({"time": times, "service": names, "ok": ok})
        writer = writer or pq.ParquetWriter(tmp_path / "e.parquet", table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    words = ["sla", "verdict", "ec2-region", str(tmp_path / "e.parquet"), "--bill", "1000"]
    with (tmp_path / "out.json").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "nephoscope", *words, "--json"], stdout=out
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["events"] == MINUTES * SERVICES
    assert len(document["periods"]) == 12 * SERVICES
    seen = dict.fromkeys(document["services"], 0)
    for period in document["periods"]:
        seen[period["service"]] += period["objectives"][0]["bad"]
        share = period["objectives"][0]["share"]["value"]
        assert (period["credit"]["owed"] == "100.00") == (0.99 <= share < 0.9999)
    assert list(seen.values()) == bad
    assert used.ru_utime + used.ru_stime < 20
    assert used.ru_maxrss * 1024 < 2e9
