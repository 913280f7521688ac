"""The rates of a stored run as features of a prediction."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.results.made import make_run

from nephoscope import command_line
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Better, Sample, Setting
from nephoscope.features.market import own_run
from nephoscope.features.market.prediction import predict
from nephoscope.features.market.prediction_section import prediction_section
from nephoscope.features.market.works import work_of
from nephoscope.store import StoredRun
from nephoscope.store.market.catalogue import MarketCatalogue
from nephoscope.store.market.records import MarketMetric, ServerType, TypeReading
from report.fingerprint import fingerprint

from .made import METRIC, catalogue_of

ZSTD = "compression.zstd/compress_bytes_per_s level=1,threads=1"
PLAN = """
version: 1
name: survey-made
repeat: {min: 10, max: 10}
benchmarks:
  - {benchmark: cpu.hash, factors: {threads: [1, 2]}}
  - {benchmark: openssl, params: {algorithm: aes-256-cbc}, factors: {threads: [1, 2]}}
"""
RATE = 3e9


def _rates(setting: Setting, number: int, target: str) -> list[Sample]:
    spread = 1 + 0.01 * (number % 3 - 1)
    return [Sample("hash_bytes_per_s", RATE * int(setting.factors["threads"]) / 2 * spread)]


def _type(rng: np.random.Generator, provider: str, number: int) -> TypeReading:
    """A type whose Redis rate is 100 for each 10^6 bytes hashed."""
    facts = {"cpus": int(rng.choice([1, 2, 4, 8])), "threads_per_core": 2, "architecture": "x86_64"}
    reading = TypeReading(
        ServerType(provider, f"t{number}", "made", "1", cpu_model=f"m {number % 4}", **facts)
    )
    sha = float(rng.uniform(0.5e9, 2.5e9)) * facts["cpus"]
    redis = sha / 1e4 * float(np.exp(rng.normal(scale=0.03)))
    for metric, value in ((METRIC["sha256"], sha), (METRIC["redis"], redis), (ZSTD, sha / 50)):
        reading.figures.append((metric, value, 0))
        reading.metrics[metric] = MarketMetric("bytes_per_s", Better.HIGHER)
    return reading


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    rng = np.random.default_rng(2)
    catalogue_of(folder, [_type(rng, f"p{number % 4}", number) for number in range(80)])
    run = _stored(folder, PLAN)
    assert run.id
    return folder


def _stored(folder: Path, plan: str, others_busy_cpus: float = 0.02) -> StoredRun:
    counters = {"others_busy_cpus": others_busy_cpus, "elapsed_ns": 10**8}
    run = make_run(folder, plan, _rates, counters=counters)
    known = fingerprint()
    known["cpu"]["features"].append("sha_ni")
    run.update(fingerprints={"local": known})
    return run


def _catalogue(store: Path) -> MarketCatalogue:
    made = MarketCatalogue.of_store(store)
    assert made is not None
    return made


def test_the_machine_of_a_run_is_predicted_with_the_error_of_its_rates(
    store: Path, tmp_path: Path
) -> None:
    catalogue = _catalogue(store)
    machine = own_run.read(_stored(tmp_path, PLAN), catalogue)
    # Nobody published AES; the relation of both programs adds 3 % on each side.
    assert set(machine.rates) == {METRIC["sha256"]}
    assert machine.rates[METRIC["sha256"]] == pytest.approx(RATE, rel=0.01)
    assert machine.low[METRIC["sha256"]] <= 0.97 * machine.rates[METRIC["sha256"]]
    assert machine.high[METRIC["sha256"]] >= 1.03 * machine.rates[METRIC["sha256"]]
    work = work_of("redis", catalogue.metadata.metrics, "--work")
    result = predict(catalogue, work, machine=machine)
    (own,) = result.types
    assert own.predicted is not None
    assert own.predicted.low is not None
    assert own.predicted.high is not None
    assert own.predicted.value == pytest.approx(RATE / 1e4, rel=0.1)
    exact = own_run.OwnMachine("exact", machine.facts, machine.rates, machine.rates, machine.rates)
    (sure,) = predict(catalogue, work, machine=exact).types
    assert sure.predicted is not None
    assert sure.predicted.low is not None
    assert own.predicted.low < sure.predicted.low < RATE / 1e4 < own.predicted.high
    assert result.not_measured == ("compression.zstd",)


def test_the_command_takes_a_run_and_states_what_it_lacks(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["predict", "--work", "redis", "--store", str(store), "--from"]
    assert command_line.main([*words, "latest"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(r"would do 2[0-9]{2} kB/s|would do 3[0-9]{2} kB/s", text)
    assert "Not measured on this machine: compression.zstd." in text
    assert command_line.main([*words, "latest", "--figures", "x.csv"]) == 2
    assert "--from and --figures exclude each other" in capsys.readouterr().err


def test_a_run_without_such_rates_is_refused_with_the_reasons(store: Path, tmp_path: Path) -> None:
    one_thread = PLAN.replace("[1, 2]", "[1]")
    run = _stored(tmp_path, one_thread)
    with pytest.raises(UsageError, match=r"all CPUs together, here 2.*survey --comparable"):
        own_run.read(run, _catalogue(store))


def test_a_prediction_from_a_busy_machine_begins_with_that(store: Path, tmp_path: Path) -> None:
    catalogue = _catalogue(store)
    work = work_of("redis", catalogue.metadata.metrics, "--work")
    quiet, busy = (
        predict(catalogue, work, machine=own_run.read(_stored(tmp_path, PLAN, used), catalogue))
        for used in (0.02, 0.9)
    )
    assert quiet.caveats == ()
    text = [getattr(block, "text", "") for block in prediction_section(busy).blocks]
    assert text[1].startswith("Measured on a busy machine: other programs used 0.90")
    assert "repeat the run while the machine is idle" in text[1]
