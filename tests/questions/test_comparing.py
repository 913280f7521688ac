"""Questions about two results: which is better, by how much, and since when."""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Sequence

import pytest
from tests.attempts import attempt
from tests.questions.conftest import Asking
from tests.results.made import TWO_TARGETS, Sampler, make_run

from nephoscope.core.model import Sample, Setting
from nephoscope.store.imports.importing import import_files
from nephoscope.store.store import Store

SURVEY = """
version: 1
name: survey-quick
repeat: {min: 12, max: 12}
benchmarks:
  - {benchmark: sys.fingerprint}
  - {benchmark: cpu.pi, params: {threads: 1}}
  - {benchmark: mem.stream}
  - {benchmark: mem.latency}
  - {benchmark: disk.sync}
  - {benchmark: cpu.gaps}
"""
VALUES = {
    "clock_read_ns": 20.0,
    "available_cpus": 4.0,
    "memory_total_bytes": 8e9,
    "pi_digits_per_s": 3e5,
    "stream_bytes_per_s": 2e10,
    "load_latency_ns": 100.0,
    "sync_latency_ns": 4e5,
    "obtained_cpus": 4.0,
    "look_cost_ns": 15.0,
}


def survey_of(seed: int, **factors: float) -> Sampler:
    """Values with 1 % of noise; `factors` multiply single metrics."""
    rng = random.Random(seed)

    def sample(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        from nephoscope import catalog

        known = catalog.load().benchmark(setting.benchmark).metrics
        found = []
        for metric in known:
            if metric.id in VALUES:
                noise = 1.0 if metric.unit in ("cpus", "bytes") else math.exp(rng.gauss(0, 0.01))
                value = VALUES[metric.id] * noise * factors.get(metric.id, 1.0)
                found.append(Sample(metric.id, value, 30 if metric.id.startswith("sync") else 1))
        return found

    return sample


def machine(name: str, kernel: str, cpus: int) -> dict[str, object]:
    return {
        "identity": {"machine_id_hash": name},
        "cpu": {"model": "AMD EPYC 9R14"},
        "kernel": {"release": kernel},
        "topology": {"online_cpus": list(range(cpus))},
    }


def test_which_of_two_machines_is_faster(ask: Asking) -> None:
    """I surveyed two VMs: which is faster, and in what do they differ?"""
    store = ask.folder / "store"
    a = make_run(store, SURVEY, survey_of(1), rounds=12)
    b = make_run(store, SURVEY, survey_of(2, load_latency_ns=4.0), rounds=12)
    a.update(fingerprints={"local": machine("a", "6.1.0", 4)})
    b.update(fingerprints={"local": machine("b", "6.8.0", 8)})
    answer = ask(f"nephoscope compare {a.id} {b.id}")
    first = answer.out.splitlines()[0]
    assert first.startswith("B is slower than A in 1 of 5 headline results (Memory latency")
    answer.says(r"A and B differ in: Topology and Kernel")
    answer.says(r"Kernel 6\.1\.0 6\.8\.0")
    answer.never_says(r"available_cpus|look_cost|\[\?|INCONCLUSIVE")
    assert len(answer.out.splitlines()) < 60
    document = ask(f"nephoscope compare {a.id} {b.id} --json").json()
    assert document["conclusion"].startswith(first[:40])
    worse = [one for one in document["comparisons"] if one["is_headline"]]
    assert [one["title"] for one in worse if one["comparison"]["verdict"]["word"] == "worse"] == [
        "Memory latency"
    ]


def slower(by: float, rounds_noise: float = 0.01) -> Sampler:
    rng = random.Random(3)

    def sample(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        value = 100 * math.exp(rng.gauss(0, rounds_noise)) * (1 + by * (target == "two"))
        return [Sample("null_ns", value)]

    return sample


def test_did_the_update_slow_us_down(ask: Asking) -> None:
    """A run measured the old and the new version in every round: is the new one slower?"""
    make_run(ask.folder / "store", TWO_TARGETS, slower(0.10), rounds=15)
    answer = ask("nephoscope compare latest")
    low, high = answer.says(
        r"^two is worse than one: \+\d+\.?\d* % \[\+(\d+\.?\d*) %, \+(\d+\.?\d*) %\] at 95 %"
    ).groups()
    assert float(low) < 10 < float(high)
    assert float(high) - float(low) < 5


def test_the_gate_of_a_pull_request(ask: Asking) -> None:
    """The pipeline shall fail when the change is slower, and write a comment that says so."""
    make_run(ask.folder / "store", TWO_TARGETS, slower(0.10), rounds=15)
    answer = ask("nephoscope compare latest --fail-on worse -o comment.md", code=1)
    answer.says(r"--fail-on worse: failed, by 1 of 1 metric")
    comment = (ask.folder / "comment.md").read_text(encoding="utf-8").splitlines()
    assert comment[0].startswith("# two is worse than one: +")
    (head,) = [line for line in comment if line.startswith("| result | A |")]
    assert head == "| result | A | B | change of B | B is | n |"
    ask("nephoscope compare latest --fail-on worse -o comment.html", code=1)
    page = (ask.folder / "comment.html").read_text(encoding="utf-8")
    assert "http://" not in page
    assert "https://" not in page
    ask("nephoscope compare latest --fail-on worse --margin 20%")


def test_two_short_runs_have_no_verdict(ask: Asking) -> None:
    """I measured three rounds only: is there a difference?"""
    make_run(ask.folder / "store", TWO_TARGETS, slower(0.10), rounds=3)
    answer = ask("nephoscope compare latest")
    answer.says(r"No verdict: 3 and 3 repetitions .* at least 6 a side")
    answer.says(r"no interval n = 3 of 6 3")
    answer.never_says(r"\[\?|INCONCLUSIVE")


def hyperfine(times_s: Sequence[float]) -> str:
    return json.dumps({"results": [{"command": "build", "times": list(times_s)}]})


def test_two_exports_of_hyperfine(ask: Asking) -> None:
    """Two hyperfine exports of one build: did it become slower? Measure both alternately then."""
    ids = []
    for name, more in (("a", 0.0), ("b", 0.01)):
        ask.write(f"{name}.json", hyperfine([1.0, 1.01, 1.02, 1.0, 1.01, 1.02, 1.01, 1.0 + more]))
        ask(f"nephoscope import {name}.json")
        ids = [run.id for run in Store(ask.folder / "store").runs()]
    answer = ask(f"nephoscope compare {ids[0]} {ids[1]}")
    answer.says("^Undecided: B against A is")
    answer.says("imported cannot be measured again")
    answer = ask(f"nephoscope compare --interleave {ids[0]} {ids[1]}", code=2)
    answer.says("cannot be measured again: its results were imported")
    answer = ask("nephoscope compare a.json b.json", code=2)
    answer.says("Import it with `nephoscope import a.json`, then compare the runs")


def test_since_when_is_our_nightly_build_slower(ask: Asking) -> None:
    """48 nightly exports, restored by git, so that all have one time: when did it become slower?"""
    rng, before = random.Random(5), 24
    store = Store(ask.folder / "store")
    for number in range(2 * before):
        level = 1.2 if number >= before else 1.0
        times_s = [level * math.exp(rng.gauss(0, 0.01)) for _ in range(6)]
        path = ask.write(f"run-{number:02}.json", hyperfine(times_s))
        os.utime(path, (1_714_557_600, 1_714_557_600))
        import_files([path], store, {})
    answer = ask("nephoscope history wall_ns")
    answer.says("48 runs have one and the same time .* in the order in which they were imported")
    found = answer.says(r"from run \S+ \(number (\d+) of 48\) on \(worse")
    assert abs(int(found[1]) - (before + 1)) <= 1
    ask("nephoscope history wall_ns --check", code=1).says("number 2[456] of 48")
    document = ask("nephoscope history wall_ns --json").json()
    assert document["series"][0]["has_times"] is False
    ask("nephoscope history wall_ns --forecast").says("1 series have no times to predict for")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("value\n10.1\n", "b.txt:1: 'value'"),
        ("10.1 ms\n10.2 ms\n", "b.txt:1: '10.1 ms'"),
        ("1,234.5\n1,230.1\n", "b.txt:1: '1,234.5'"),
        ("10,1\n10,2\n", "b.txt:1: '10,1'"),
        ("10.1\nNaN\n", "b.txt:2: 'NaN'"),
    ],
)
def test_two_files_of_numbers_with_anything_else_in_them(
    ask: Asking, text: str, place: str
) -> None:
    """Two files of numbers, one with a header, units, or commas: is it read rightly?"""
    ask.write("a.txt", "10.1\n10.2\n10.3\n10.2\n10.4\n")
    ask.write("b.txt", text)
    ask("nephoscope compare a.txt b.txt", code=2).says(place)


SLEEPS = """\
n=$(($(cat count) + 1))
echo $n > count
sleep $(sed -n ${n}p times)
"""


@pytest.mark.alone
def test_how_small_a_slowdown_would_i_see_here(ask: Asking) -> None:
    """My command's time varies: does `noise` say how wide the next comparison of it will be?

    The command sleeps for a time of a list, so that its noise is planted and the same each time.
    """
    rng = random.Random(4)
    ask.write("sleeps.sh", SLEEPS)
    ask.write("times", "".join(f"{rng.uniform(0.01, 0.06):.4f}\n" for _ in range(2000)))
    one = "--command 'sh sleeps.sh' --set maximum_runs=1 --seed 1"

    def measure() -> tuple[str, bool]:
        ask.write("count", "0")
        noise = ask(f"nephoscope noise {one} --for 8s --repetitions 30 --json").json()
        (row,) = (row for row in noise["results"][0]["comparisons"] if row["n"] == 30)
        ask.write("count", "1000")
        bench = ask(f"nephoscope bench {one} --command 'sh sleeps.sh' -r 30 --json").json()
        (against,) = (
            line for line in bench["experiment"]["comparisons"] if line["metric"] == "wall_ns"
        )
        ratio = against["comparison"]["ratio"]
        predicted, actual = row["half_width"]["value"], (ratio["high"] - ratio["low"]) / 2
        return f"{predicted:.3f} predicted, {actual:.3f}", 1 / 1.3 < predicted / actual < 1.3

    attempt("half width of a comparison of 30 rounds", measure)
