"""Questions whose answer depends on which trials count."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.questions.conftest import Asking
from tests.results.isolated import Truth, make
from tests.results.made import make_run

from nephoscope.core.model import Sample, Setting
from nephoscope.features.fleet.result import SETTINGS

TWO = """
name: two-vms
repeat: {min: 24, max: 24}
targets: [{name: whole}, {name: capped}]
benchmarks: [{benchmark: cpu.hash, params: {threads: 1}}]
"""


def of_a_capped_vm(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    """310/s; the capped VM has bursts of 340/s and is stopped in two of three trials."""
    rate = 310.0
    if target == "capped":
        rate = 160.0 if is_throttled(number, target) else 340.0
    noise = random.Random(f"{number} {target}").gauss(0, 0.004)
    return [Sample("hash_bytes_per_s", 1e6 * rate * (1 + noise))]


def is_throttled(number: int, target: str) -> bool:
    return target == "capped" and number % 3 != 0


def cause_of(number: int, target: str) -> str:
    return "throttled" if number > 0 and is_throttled(number, target) else ""


def test_which_of_two_vms_is_faster_when_slow_trials_were_excluded(ask: Asking) -> None:
    """My plan excluded 16 of 24 trials of the VM with a CPU cap: is it really the faster one?"""
    run = make_run(ask.folder / "store", TWO, of_a_capped_vm, rounds=24, cause_of=cause_of)
    answer = ask(f"nephoscope compare {run.id}:whole {run.id}:capped")
    answer.says(r"16 of 24 trials of capped were excluded \(throttled by a CPU quota\), 0 of 24")
    answer.says(r"No verdict|INCONCLUSIVE")
    answer.never_says(r"capped is better")
    document = ask(f"nephoscope compare {run.id}:whole {run.id}:capped --json").json()
    (line,) = document["comparisons"]
    assert line["comparison"]["verdict"]["word"] == "inconclusive"
    assert line["comparison"]["ratio"]["low"] < 1 < line["comparison"]["ratio"]["high"]


def test_which_vm_ranks_first_when_slow_trials_were_excluded(ask: Asking) -> None:
    """Which of the two VMs is the better one, over all that I measured?"""
    run = make_run(ask.folder / "store", TWO, of_a_capped_vm, rounds=24, cause_of=cause_of)
    answer = ask(f"nephoscope rank {run.id}")
    answer.says(r"16 of 24 trials of capped were excluded \(throttled by a CPU quota\)")
    document = ask(f"nephoscope rank {run.id} --json").json()
    (row,) = document["rows"]
    ranks = {cell["alternative"]: (cell["rank_low"], cell["rank_high"]) for cell in row["cells"]}
    assert ranks == {"whole": (1, 2), "capped": (1, 2)}, "neither is told to be the better one"


FLEET = f"""
name: fleet
warmup: 0
repeat: {{min: 3, max: 3}}
targets: [{", ".join(f"{{name: node{at}}}" for at in range(1, 11))}]
benchmarks: [{{benchmark: cpu.hash, params: {{threads: 1}}}}]
"""


def test_which_server_of_the_fleet_is_slow_when_its_slow_trials_were_excluded(ask: Asking) -> None:
    """Two of three trials of node3 were in swap and were left out: is it as fast as the others?"""

    def of_a_node(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        slow = 0.4 if cause_of_a_node(number, target) else 1.0
        noise = random.Random(f"{number} {target}").gauss(0, 0.01)
        return [Sample("hash_bytes_per_s", 1e9 * slow * (1 + noise))]

    def cause_of_a_node(number: int, target: str) -> str:
        return "swapped" if target == "node3" and number > 1 else ""

    run = make_run(ask.folder / "store", FLEET, of_a_node, rounds=3, cause_of=cause_of_a_node)
    run.update(**{SETTINGS: {}})
    answer = ask(f"nephoscope fleet --run {run.id}")
    answer.says(r"node3: cpu\.hash .* odd or not, depending on .* 2 \(memory in swap\)")


def test_what_does_the_neighbour_cost_me(ask: Asking) -> None:
    """My VM costs 0.20 USD an hour: what does a neighbour that loads the memory cost me?"""
    run = make(ask.folder / "store", Truth(rounds=8, intensities=(1.0,)))
    targets = [dict(one) for one in run.manifest.targets]
    targets[0]["per_hour"] = 0.2
    run.update(targets=targets)
    document = ask(f"nephoscope show {run.id} --json").json()
    (full,) = [
        cell
        for cell in document["isolation"]["cells"]
        if (cell["victim"]["benchmark"], cell["resource"], cell["intensity"])
        == ("mem.stream", "memory", 1.0)
    ]
    assert full["lost"]["unit"] == "USD/h"
    # Twice as slow: half of what is paid.
    assert full["lost"]["low"] <= 0.1 <= full["lost"]["high"]
    assert full["lost"]["high"] - full["lost"]["low"] < 0.01


def test_what_would_i_save_without_a_census(ask: Asking) -> None:
    """How much do I save if I keep only the fast instances? I have measured nothing yet."""
    answer = ask("nephoscope cost saving --price 0.1", code=2)
    answer.says(r"Run `nephoscope census`")
    answer.says(r"--mix MODEL=SHARE:SPEED")
    answer.never_says(r"\bnone\b")
