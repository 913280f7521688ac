"""storage.transfer on a local disk: its times make its rates, and what it derives from them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from test_storage_transfer import PASSES, SHORT
from trials import Trial, run, start

pytestmark = pytest.mark.together


@pytest.mark.truth("storage.transfer", "transfer_bytes_per_s", "transfer_latency_ns")
@pytest.mark.truth("storage.transfer", "client_bytes_per_s", "verified_count")
@pytest.mark.truth("storage.transfer", "transactions_per_s", "transaction_latency_ns")
@pytest.mark.truth("storage.transfer", "saturation_bytes")
def test_times_of_objects_make_the_rates(disk: Path) -> None:
    """Objects follow one another, so that their times make those of a client and of a pass. The
    last two sizes are practically equal, so that the smaller one has the highest throughput."""
    sizes, objects = [64 << 10, 4 << 20, (4 << 20) + 1], 8
    params = {"object_bytes": sizes, "objects": objects, "seed": 7, "transactions_ns": 50_000_000}
    trial = run("storage.transfer", {**params, "directory": str(disk), "sync": False})
    passes: dict[tuple[str, str], dict[int, float]] = {}
    for sample in trial.all("transfer_bytes_per_s"):
        factors = sample["factors"]
        rate, size = float(sample["value"]), factors["object_bytes"]
        passes.setdefault((factors["operation"], factors.get("cache", "")), {})[size] = rate
        count, mean_ns = trial.histogram("transfer_latency_ns", **factors)
        assert count == objects
        # What lies between two objects is little beside those of megabytes.
        if size >= 4 << 20:
            assert 0.8 <= count * mean_ns / 1e9 / (objects * size / rate) <= 1.01
        # A client's own rate leaves out what lies between them.
        (own,) = trial.series("client_bytes_per_s", **factors)
        assert objects * size / own == pytest.approx(count * mean_ns / 1e9, rel=0.01)
    assert len(passes) == PASSES
    assert trial.one("verified_count") == objects * len(sizes)
    said = {
        (s["factors"]["operation"], s["factors"].get("cache", "")): s["value"]
        for s in trial.all("saturation_bytes")
    }
    saturated = {}
    for name, rates in passes.items():
        least = next(size for size in sizes if rates[size] >= 0.9 * max(rates.values()))
        if least != sizes[-1]:
            saturated[name] = least
    assert said == saturated
    assert saturated
    for sample in trial.all("transactions_per_s"):
        _, mean_ns = trial.histogram("transaction_latency_ns", **sample["factors"])
        # One client, one at a time.
        assert 0.6 <= sample["value"] * mean_ns / 1e9 <= 1.01


@pytest.mark.truth("storage.transfer", "resident_bytes")
def test_its_peak_memory_is_what_the_kernel_shows_while_it_runs(disk: Path) -> None:
    peaks = [0]
    # Its lines stay in the pipe until it has ended.
    short = {**SHORT, "transactions_ns": 0, "directory": str(disk)}
    with start("storage.transfer", short) as process:
        # It only ever rises. That of a process that has ended counts the one that started it too.
        while process.poll() is None:
            status = Path(f"/proc/{process.pid}/status").read_text()
            peaks += [int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line]
            time.sleep(0.002)
        assert process.stdout is not None
        trial = Trial(process.stdout.read())
    assert trial.one("resident_bytes") == pytest.approx(peaks[-1] * 1024, rel=0.1)


@pytest.mark.truth("storage.transfer", "fairness_ratio")
def test_two_clients_are_as_fair_as_jains_index_says(disk: Path) -> None:
    trial = run("storage.transfer", {**SHORT, "directory": str(disk)})
    for sample in trial.all("fairness_ratio"):
        rates = trial.series("client_bytes_per_s", **sample["factors"])
        index = sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))
        assert sample["value"] == pytest.approx(index)
