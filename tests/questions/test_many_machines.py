"""Questions about many machines: the odd one, the neighbour, the instance lottery, the months."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.features.history.drawn import DAY_S, START_S, append_run
from tests.questions.conftest import Asking
from tests.results.isolated import Truth, make
from tests.results.made import Sampler, make_run

from nephoscope.core.model import Sample, Setting
from nephoscope.features.fleet.result import SETTINGS

FLEET = f"""
name: fleet
warmup: 0
repeat: {{min: 3, max: 3}}
targets: [{", ".join(f"{{name: node{at}}}" for at in range(1, 13))}]
benchmarks: [{{benchmark: cpu.hash, params: {{threads: 1}}}}]
"""
DAYS = 45
COUNTS = """instance_type,model,machines,zone,hour,benchmark,speed,low,high,n
m1.large,E5645,60,us-east-1a,3,,,,,
m1.large,E5507,20,us-east-1a,3,,,,,
m1.large,E5645,,,,pi,1.4,1.35,1.45,12
m1.large,E5507,,,,pi,1,,,
"""


def hashing(slow: str = "", ratio: float = 1.0) -> Sampler:
    def sample(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        noise = 1 + random.Random(f"{number} {target}").gauss(0, 0.01)
        return [Sample("hash_bytes_per_s", 1e9 * noise * (ratio if target == slow else 1))]

    return sample


def test_which_machine_of_twelve_is_slow(ask: Asking) -> None:
    """One of my twelve machines has half the CPU speed: which one, and does my script notice?"""
    run = make_run(ask.folder / "store", FLEET, hashing("node7", 0.5), rounds=3)
    run.update(**{SETTINGS: {}})
    answer = ask(f"nephoscope fleet --run {run.id}", code=1)
    answer.says(r"node7: cpu\.hash throughput is 497 MB/s, 0\.499 times the median of the fleet")
    answer.never_says(r"node(?!7\b)\d+: cpu\.hash")


def test_are_my_machines_alike(ask: Asking) -> None:
    """Twelve machines of one kind: is any of them odd, and how many false alarms do I get?"""
    run = make_run(ask.folder / "store", FLEET, hashing(), rounds=3)
    run.update(**{SETTINGS: {}})
    answer = ask(f"nephoscope fleet --run {run.id}")
    answer.says(r"None of 12 targets is odd")
    document = ask(f"nephoscope fleet --run {run.id} --json").json()
    assert document["odd"] == []


def test_which_neighbour_hurts_my_stream(ask: Asking) -> None:
    """A neighbour copies memory and another computes: which one halves the speed of my program?"""
    run = make(ask.folder / "store", Truth(rounds=8, intensities=(1.0,)))
    answer = ask(f"nephoscope show {run.id}")
    found = answer.says(r"memory bandwidth: ([\d.]+) \[[^]]*\] \(n = 8\) times worse")
    assert abs(float(found[1]) - 2) < 0.03
    answer.says(r"load on memory bandwidth costs mem\.stream throughput 50\.\d+ % \[")
    answer.says(r"Place memory-intensive programs on separate machines")
    answer.never_says(r"stream_bytes_per_s")


def test_what_would_a_neighbour_measurement_do(ask: Asking) -> None:
    """Before I let it load my machine: how long does it take, and what does it touch?"""
    answer = ask(
        "nephoscope isolate cpu --aggressor cpu --target victim=local --target aggressor=local "
        "--quick --dry-run"
    )
    answer.says(r"nothing is run")
    answer.says(r"Trials: 33 \(3 alternatives, 7 rounds, warm-up included\)\.")
    answer.says(r"Time: (\d+) s; a round takes")
    answer.never_says(r"(\d+ s) to \1")


def test_how_fast_is_the_next_instance(ask: Asking) -> None:
    """60 of 80 instances had the fast CPU: how likely is the next one fast, how sure is that?"""
    ask.write("counts.csv", COUNTS)
    answer = ask("nephoscope census --import counts.csv --at-least 1.2")
    found = answer.says(r"≥ 1\.20 +75\.0 % +\[([\d.]+), ([\d.]+)\]")
    assert float(found[1]) < 75 < float(found[2])
    # 0.75 of 1.4 and 0.25 of 1.
    answer.says(r"pi +1\.300 +\[1\.2\d, 1\.3\d\] +80")
    ask("nephoscope cost saving --import counts.csv --price 0.34 --hours 24").says(
        r"Selecting E5645 saves 0\.\d+ USD \([\d.]+ %; \[[^]]*\]\)"
    )


def test_did_something_become_slower_this_spring(ask: Asking) -> None:
    """I measure every day; after 30 of 45 days it became 20 % slower: when, and does CI fail?"""
    rng = random.Random(8)
    for day in range(DAYS):
        level = 120.0 if day >= 30 else 100.0
        append_run(
            ask.folder / "store",
            START_S + DAY_S * day,
            {
                "null_ns": level * (1 + rng.gauss(0, 0.01)),
                "pi_digits_per_s": 3e5 * (1 + rng.gauss(0, 0.01)),
            },
        )
    answer = ask("nephoscope history null_ns --check", code=1)
    found = answer.says(r"\+([\d.]+) % \[\+([\d.]+) %, \+([\d.]+) %\] from run \S+ on \(worse")
    assert float(found[2]) < 20 < float(found[3])
    document = ask("nephoscope history null_ns --json").json()
    (change,) = document["series"][0]["changes"]
    assert abs(change["at_s"] - (START_S + DAY_S * 30)) <= DAY_S
    # The other metric did not change: a green pipeline says so.
    ask("nephoscope history pi_digits_per_s --check").says(r"No regression in 1 series\.")
