"""A measured machine among planted ones: percentile, class, type, and what is not compared."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.features.market.made import METRIC, catalogue_of, offer, server
from tests.results.made import make_run

from nephoscope import command_line
from nephoscope.core.model import Sample, Setting
from nephoscope.features.known_machines import feature
from nephoscope.features.known_machines.records import KnownMachines, MachineStanding
from nephoscope.features.known_machines.section import NOTHING
from nephoscope.features.market import run_rates
from nephoscope.features.market.prices import PriceList, store_prices
from nephoscope.results import analyse_run
from nephoscope.store import StoredRun
from nephoscope.store.market.records import TypeReading
from report.fingerprint import fingerprint

PLAN = """
version: 1
name: survey-made
repeat: {min: 10, max: 10}
benchmarks:
  - {benchmark: cpu.hash, factors: {threads: [1, 2]}}
  - {benchmark: openssl, params: {algorithm: aes-256-cbc}, factors: {threads: [1, 2]}}
  - {benchmark: stress-ng.cpu, params: {method: div16}, factors: {threads: [1, 2]}}
  - {benchmark: lmbench.memory, params: {operation: read, array_bytes: 256MB, threads: 2}}
  - {benchmark: mem.latency, params: {pages: [small]}}
"""
SHA, AES, ONE = METRIC["sha256"], METRIC["aes"], METRIC["cpu-single"]
GIB = 1 << 30
MODEL = fingerprint()["cpu"]["model"]


def measured(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    """Rates of 105 +- 1 by each thread, in units of 10 million."""
    threads = int(setting.factors.get("threads", 2))
    step = (3 * number) % 7 - 3 if setting.benchmark == "openssl" else (7 * number) % 5 - 2
    rate = 1e7 * threads * (105 + step / 2)
    metric = {
        "cpu.hash": "hash_bytes_per_s",
        "openssl": "hash_bytes_per_s",
        "stress-ng.cpu": "operations_per_s",
        "lmbench.memory": "memory_bytes_per_s",
    }.get(setting.benchmark)
    if metric is None:
        return [Sample("load_latency_ns", 80.0, factors={"vector_bytes": 1024, "pages": "small"})]
    return [Sample(metric, rate)]


def published(cpus: int = 2, **facts: object) -> list[TypeReading]:
    """Forty types with rates of 1.61 to 2.39 in units of 1e9: 105 * 2 lies behind 24 or 25."""
    made = []
    for number in range(40):
        rate = 1e9 * (1.61 + number / 50)
        known = {
            "cpus": cpus,
            "memory_bytes": 8 * GIB,
            "architecture": "x86_64",
            "cpu_model": MODEL if number % 2 else "another",
            **facts,
        }
        reading = server(
            f"alpha/t{number}",
            {"sha256": rate, "aes": rate, "cpu": rate, "cpu-single": rate / 2, "geekbench": rate},
            **known,
        )
        made.append(reading)
    own = server("aws/m5.large", {"sha256": 2e9, "geekbench": 1.63e9}, **known)
    return [*made, own]


def stored(
    folder: Path, *, has_sha: bool = True, firmware: str = "", plan: str = PLAN
) -> StoredRun:
    run = make_run(folder, plan, measured)
    known = fingerprint()
    if has_sha:
        known["cpu"]["features"].append("sha_ni")
    known["hypervisor"]["sys_vendor"] = firmware
    run.update(fingerprints={"local": known})
    return run


def standing(run: StoredRun) -> MachineStanding:
    record = analyse_run.build(run).part(KnownMachines)
    assert record is not None
    assert len(record.machines) == 1
    return record.machines[0]


def test_a_machine_has_its_place_among_those_of_its_class(tmp_path: Path) -> None:
    catalogue_of(tmp_path, [*published(), server("alpha/big", {"sha256": 1e12}, cpus=64)])
    machine = standing(stored(tmp_path))
    by_metric = {rank.metric: rank for rank in machine.ranks if "memory" in rank.machines.title}
    assert set(by_metric) == {SHA, AES, METRIC["cpu"], ONE}
    rank = by_metric[SHA]
    assert rank.percentile is not None
    # 25 of 40 others are below 2.1e9, and the one of the own type's name.
    assert rank.percentile.value == pytest.approx(26 / 41)
    assert rank.percentile.low is not None
    assert rank.percentile.high is not None
    assert rank.percentile.low < 25 / 41 < 27 / 41 < rank.percentile.high
    assert rank.machines.machines == 41
    assert rank.machines.title == "x86_64 with 2 CPUs, 5.40 GiB to 10.8 GiB of memory"
    # The relation of two programs widens it: 3 % of 2.1e9 are 3 machines on each side.
    assert by_metric[AES].percentile is not None
    assert by_metric[AES].percentile.low is not None
    assert rank.percentile.low < by_metric[AES].percentile.low
    of_model = next(rank for rank in machine.ranks if rank.machines.title.startswith(MODEL))
    # Twenty of the planted types and the one of AWS, 12 and 1 of which are slower.
    assert of_model.machines.machines == 21
    assert of_model.percentile is not None
    assert of_model.percentile.value == pytest.approx(13 / 21)
    assert re.search("bandwidth of such an array", machine.left_out["lmbench.memory"])
    assert re.search("published latency", machine.left_out["mem.latency"])
    assert machine.type == ""


def test_the_type_that_the_firmware_states_adds_price_and_published_figures(
    tmp_path: Path,
) -> None:
    catalogue_of(tmp_path, published())
    offers = [offer(f"alpha/t{number}", 0.1 if number < 20 else 0.5) for number in range(40)]
    store_prices(tmp_path, PriceList([*offers, offer("aws/m5.large", 0.096)]))
    machine = standing(stored(tmp_path, firmware="Amazon EC2"))
    assert (machine.type, machine.identified_by) == ("aws/m5.large", "firmware")
    assert machine.price_per_h == pytest.approx(0.096)
    rank = next(rank for rank in machine.ranks if rank.metric == SHA)
    # Only the cheap half is of the price class, and all of it is slower; the own type is left out.
    assert rank.machines.machines == 20
    assert rank.machines.title.endswith("0.0679 to 0.136 USD an hour")
    assert rank.percentile is not None
    assert rank.percentile.value == 1.0
    assert rank.of_type == 2e9
    (of_type,) = machine.type_ranks
    assert of_type.metric == METRIC["geekbench"]
    assert of_type.value.low is None
    assert of_type.percentile is not None
    # 1.61e9 is below 1.63e9, and one is equal.
    assert of_type.percentile.value == pytest.approx(1.5 / 20)


def test_a_label_states_the_type_and_an_unknown_one_is_named(tmp_path: Path) -> None:
    catalogue_of(tmp_path, published())
    run = stored(tmp_path, firmware="Amazon EC2")
    run.update(labels={"server-type": "alpha/T7"})
    assert standing(run).type == "alpha/t7"
    run.update(labels={"server-type": "alpha/t7777"})
    machine = standing(run)
    assert machine.type == ""
    assert re.search("No imported type is 'alpha/t7777'", machine.notes[0])
    catalogue_of(tmp_path, [*published(), server("alpha/big", {"sha256": 1e12}, cpus=64)])
    run.update(labels={"server-type": "alpha/big"})
    assert re.search("has 2 CPUs and alpha/big 64", standing(run).notes[0])


def test_the_cloud_states_the_type_before_the_firmware(tmp_path: Path) -> None:
    catalogue_of(tmp_path, published())
    run = stored(tmp_path, firmware="Amazon EC2")
    known = dict(run.manifest.fingerprints["local"])
    run.update(
        fingerprints={"local": known | {"cloud": {"provider": "ec2", "instance_type": "m5.large"}}}
    )
    assert standing(run).identified_by == "cloud metadata"
    run.update(
        fingerprints={"local": known | {"cloud": {"provider": "google", "instance_type": "e2-x"}}}
    )
    assert re.search("No imported type is 'gcp/e2-x'", standing(run).notes[0])


def test_without_sha_instructions_only_the_same_program_is_compared(tmp_path: Path) -> None:
    catalogue_of(tmp_path, published())
    machine = standing(stored(tmp_path, has_sha=False))
    assert SHA not in {rank.metric for rank in machine.ranks}
    assert re.search("no SHA instructions", machine.left_out["cpu.hash"])


def test_a_condition_that_too_few_meet_is_dropped_and_named(tmp_path: Path) -> None:
    catalogue_of(tmp_path, published(memory_bytes=64 * GIB))
    (rank, *_) = standing(stored(tmp_path)).ranks
    assert rank.machines.title == (
        "x86_64 with 2 CPUs; too few with 5.40 GiB to 10.8 GiB of memory"
    )
    # A price that enough types have stays, where the memory is dropped.
    offers = [offer(f"alpha/t{number}", 0.1 if number < 20 else 0.5) for number in range(40)]
    store_prices(tmp_path, PriceList([*offers, offer("aws/m5.large", 0.096)]))
    (rank, *_) = standing(stored(tmp_path, firmware="Amazon EC2")).ranks
    assert rank.machines.title == (
        "x86_64 with 2 CPUs, 0.0679 to 0.136 USD an hour; too few with 5.40 GiB to 10.8 GiB of "
        "memory"
    )
    catalogue_of(tmp_path, published(cpus=3))
    (rank, *_) = standing(stored(tmp_path)).ranks
    assert rank.percentile is None
    assert rank.machines.machines == 0


def test_show_says_how_to_get_the_data_and_prints_the_percentile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = stored(tmp_path, plan=re.sub(r".*openssl.*\n", "", PLAN))
    words = ["show", run.id, "--store", str(tmp_path)]
    assert command_line.main([*words, "--full-report"]) == 0
    assert NOTHING in " ".join(capsys.readouterr().out.split())
    catalogue_of(tmp_path, published())
    assert command_line.main(words) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(
        r"This machine is faster than 63 % \[[0-9]+, [0-9]+\] of the 41 published machines of its "
        r"class \(x86_64 with 2 CPUs, 5\.40 GiB to 10\.8 GiB of memory\) by cpu\.hash throughput",
        text,
    )
    assert command_line.main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["known_machines"]["types"] == 41


def test_damaged_market_files_leave_the_rest_of_the_report(tmp_path: Path) -> None:
    run = stored(tmp_path)
    path = catalogue_of(tmp_path, published()).path
    path.write_bytes(path.read_bytes()[:-100])
    record = analyse_run.build(run).part(KnownMachines)
    assert record is not None
    assert re.search(r"catalogue\.parquet is damaged .* import the data again", record.problem)


def test_every_benchmark_with_a_relation_makes_a_record() -> None:
    assert feature.BENCHMARKS == run_rates.BENCHMARKS
