"""Which published metrics a line of a run stands for."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.results.made import make_run

from nephoscope.core.model import Sample
from nephoscope.features.market.run_rates import comparable_rates
from nephoscope.results import analyse_run
from report.fingerprint import fingerprint

ONE, ALL = (f"stress-ng.div16/ops_per_s workers={workers}" for workers in ("1", "all"))
READ = "bw_mem.rd/bytes_per_s mb=256.00"
WRITE = "bw_mem.wr/bytes_per_s mb=256.00"
SHA = "openssl.sha256/bytes_per_s block=16384"
PUBLISHED = (ONE, ALL, READ, WRITE, SHA, "openssl.sha512/bytes_per_s block=1024")


@pytest.mark.parametrize(
    ("entry", "metric", "cpus", "expected"),
    [
        ("stress-ng.cpu, params: {method: div16}", "operations_per_s", 1, {ONE, ALL}),
        ("stress-ng.cpu, params: {method: div16}", "operations_per_s", 2, {ONE}),
        ("stress-ng.cpu, params: {method: div16, threads: 2}", "operations_per_s", 2, {ALL}),
        ("stress-ng.cpu, params: {method: div16, threads: 2}", "operations_per_s", 4, set()),
        ("stress-ng.cpu, params: {method: pi}", "operations_per_s", 1, set()),
        ("openssl, params: {threads: 2}", "hash_bytes_per_s", 2, {SHA}),
        ("openssl, params: {threads: 2}", "hash_bytes_per_s", 4, set()),
        ("openssl, params: {algorithm: md5}", "hash_bytes_per_s", 1, set()),
        ("cpu.hash, params: {threads: 2}", "hash_bytes_per_s", 2, {SHA}),
        ("cpu.hash, params: {threads: 2, block_bytes: 64KiB}", "hash_bytes_per_s", 2, set()),
        # 256 MiB are 268.4 MB, 5 % more; 128 MB are not.
        (
            "lmbench.memory, params: {operation: read, array_bytes: 256MiB}",
            "memory_bytes_per_s",
            1,
            {READ},
        ),
        (
            "lmbench.memory, params: {operation: read, array_bytes: 128MB}",
            "memory_bytes_per_s",
            1,
            set(),
        ),
        ("lmbench.memory, params: {array_bytes: 256MB}", "memory_bytes_per_s", 1, set()),
        ("mem.stream", "stream_bytes_per_s", 1, set()),
    ],
)
def test_only_the_same_work_is_compared(
    tmp_path: Path, entry: str, metric: str, cpus: int, expected: set[str]
) -> None:
    rates, left_out = compared(tmp_path, entry, metric, cpus)
    assert rates == expected
    assert bool(left_out) == (not expected)


def test_a_rate_without_an_interval_is_not_compared(tmp_path: Path) -> None:
    rates, left_out = compared(
        tmp_path, "openssl, params: {threads: 2}", "hash_bytes_per_s", 2, rounds=3
    )
    assert (rates, left_out) == (set(), {"openssl": "it has too few trials for an interval"})


def compared(
    folder: Path, entry: str, metric: str, cpus: int, rounds: int = 8
) -> tuple[set[str], dict[str, str]]:
    """Returns the published metrics that compare with a benchmark, and why one does not."""
    plan = "version: 1\nname: made\nrepeat: {min: 8, max: 8}\nbenchmarks:\n"
    run = make_run(
        folder,
        f"{plan}  - {{benchmark: {entry}}}\n",
        lambda setting, number, target: [Sample(metric, 1e9 + 1e6 * number)],
        rounds=rounds,
    )
    known = fingerprint()
    known["cpu"]["features"].append("sha_ni")
    known["topology"]["allowed_cpus"] = list(range(cpus))
    run.update(fingerprints={"local": known})
    rates, left_out = comparable_rates(analyse_run.run_data(run), "local", PUBLISHED)
    return {rate.metric for rate in rates}, left_out
