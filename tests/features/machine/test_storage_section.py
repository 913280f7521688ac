"""The report of a store: throughput by size, saturation, fairness, serial times and rates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.results.made import make_run

from nephoscope.core.model import Sample, Setting
from nephoscope.features.machine import storage_section
from nephoscope.report.blocks import Chart, Heading, Sentence, Table
from nephoscope.results import analyse_run

PLAN = """version: 1
name: store
benchmarks:
  - benchmark: storage.transfer
    params: {clients: 2}
repeat: {min: 6, max: 6}
"""
SIZES = (1, 1024, 1 << 20)


def answers(_: Setting, round_number: int, __: str) -> Sequence[Sample]:
    jitter = round_number / 1000
    samples = []
    for size, rate in zip(SIZES, (1e3, 9.5e7, 1e8), strict=True):
        factors = {"operation": "write", "object_bytes": size}
        samples.append(Sample("transfer_bytes_per_s", rate * (1 + jitter), factors=factors))
        samples.append(Sample("fairness_ratio", 0.9 + jitter, factors=factors))
    samples.append(Sample("saturation_bytes", 1024.0, factors={"operation": "write"}))
    for clients, rate in ((1, 1000.0), (2, 1500.0)):
        factors = {"operation": "read", "clients_at_once": clients}
        samples.append(Sample("transactions_per_s", rate * (1 + jitter), factors=factors))
        samples.append(Sample("transaction_latency_ns", 1e6, count=100, factors=factors))
    return samples


def test_rates_stand_beside_the_inverse_of_serial_times(tmp_path: Path) -> None:
    section = storage_section.build(analyse_run.build(make_run(tmp_path, PLAN, answers, rounds=6)))
    assert section is not None
    (chart,) = [block for block in section.blocks if isinstance(block, Chart)]
    assert chart.brief is not None
    assert len(chart.brief.rows) == len(SIZES)
    saturation, fairness, transactions = [b for b in section.blocks if isinstance(b, Table)]
    assert "1.00 KiB" in saturation.rows[0][1]
    assert len(fairness.rows) == len(SIZES)
    headings = [block.text for block in section.blocks if isinstance(block, Heading)]
    assert headings == ["Fairness among clients", "Transactions"]
    # Two clients do 1,500 per second; each of them takes 1 ms, as one alone does.
    texts = [" ".join(str(cell) for cell in row) for row in transactions.rows]
    assert all(text.endswith("1.00 ms 1.00 k/s") for text in texts), texts


def test_a_store_without_a_saturation_size_is_said_so(tmp_path: Path) -> None:
    def rising(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
        samples = answers(setting, round_number, target)
        return [sample for sample in samples if sample.metric == "transfer_bytes_per_s"]

    section = storage_section.build(analyse_run.build(make_run(tmp_path, PLAN, rising, rounds=6)))
    assert section is not None
    sentences = [block for block in section.blocks if isinstance(block, Sentence)]
    assert "no size saturates" in str(sentences[0])
