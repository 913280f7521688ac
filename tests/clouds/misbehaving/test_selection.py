"""A census and searches on machines that are reached over ssh; hosts have planted speeds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import tools

from nephoscope.command_line import main
from nephoscope.features.cloud.speeds import chosen_line, of_type
from nephoscope.stats.statistics.proportions import wilson
from nephoscope.store import Store

from .catalogue import image_id
from .double import Double

pytestmark = [
    tools.needs("sshd", "ssh", "ssh-keygen"),
    pytest.mark.usefixtures("root_only"),
    pytest.mark.slow,
]

FAST, SLOW = 0.5, 0.15
"""CPUs; few enough that they are there while other programs use this machine."""
HOST_CPUS = (FAST,) * 6 + (SLOW,) * 4
"""Of ten hosts; so six of ten machines are fast in the mean."""
FAST_SHARE = 0.6
BENCH = "cpu.hash"
"""Its trials last longer than the period of a CPU group, so that the group slows them."""

Command = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def machines(cloud: Double) -> Iterator[Double]:
    cloud.settings(machines=True, boot_s=0.3, stop_s=0.3, shutdown_s=0.3, host_cpus=HOST_CPUS)
    yield cloud
    cloud.reset()


@pytest.fixture
def nephoscope(
    machines: Double,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Command:
    """Runs a command of `nephoscope cloud`; returns its exit code, document and other words."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("NEPHOSCOPE_STORE", str(tmp_path / "store"))
    region = "us-east-1"
    image = image_id(region, "debian-12-amd64-20260801-1200")
    common = ["ec2", "--endpoint", machines.endpoint, "--region", region, "--image", image]

    def run(word: str, *more: str) -> tuple[int, Any, str]:
        capsys.readouterr()
        code = main(["cloud", word, *common, "--type", "t3.micro", "--json", *more])
        out, err = capsys.readouterr()
        return code, json.loads(out) if out else None, err

    return run


def is_fast(machines: Double, instance: str) -> bool:
    """What the double knows of the host of a machine, also of one that is gone."""
    (host,) = [one["host"] for one in machines.oracle() if one["id"] == instance]
    return bool(HOST_CPUS[int(host.partition("-")[2])] == FAST)


def test_a_census_finds_the_planted_hosts_and_five_searches_save_what_was_predicted(
    machines: Double, nephoscope: Command, tmp_path: Path
) -> None:
    words = ("--zones", "us-east-1a,us-east-1b", "--count", "6", "--at-once", "4")
    code, found, said = nephoscope("census", *words, "--budget", "4s", "--money", "5")
    assert code == 0, said
    assert (found["planned"], found["measured"], len(found["runs"])) == (12, 12, 3)
    assert machines.live() == []
    assert sum(one["marks"]["reachable"]["n"] for one in found["launches"]) == 12
    # The speeds tell the planted hosts apart, and their share has an interval that covers.
    store = Store(tmp_path / "store")
    rented = {
        target: machine["id"]
        for run in store.runs()
        for target, machine in run.manifest.rented.items()
    }
    assert len(set(rented.values())) == 12
    values = of_type(store.runs(), BENCH, "t3.micro")
    line = chosen_line(values)
    assert line is not None
    speeds = sorted(max(own) for own in values[line].values())
    middle = (FAST * SLOW) ** 0.5 / FAST * speeds[-1]
    fast = sum(speed > middle for speed in speeds)
    assert fast == sum(is_fast(machines, one) for one in rented.values())
    share = wilson(fast, len(speeds))
    assert share.low is not None
    assert share.high is not None
    assert share.low <= FAST_SHARE <= share.high

    inside = 0
    for number in range(5):
        more = ["--best"] if number % 2 else []
        code, picked, said = nephoscope(
            "pick", *more, "--at-most", "4", "--hours", "20", "--money", "2",
            "--budget", "4s", "--bench", BENCH, "--name", f"pick{number}",
        )  # fmt: skip
        assert code == 0, said
        (live,) = machines.live("instance")
        assert live["id"] == picked["selected"]
        kept = [one for one in picked["candidates"] if one["is_kept"]]
        assert [one["id"] for one in kept] == [picked["selected"]]
        # With --best the fastest is kept, without the last one.
        speeds = [one["speed"] for one in picked["candidates"]]
        assert kept[0]["speed"] == (max(speeds) if more else speeds[-1])
        predicted, real = picked["predicted"], picked["saving"]
        assert picked["search_cost"] > 0
        inside += predicted["low"] <= real["value"] <= predicted["high"]
        assert main(picked["remove"].split()[1:]) == 0
        assert machines.live() == []
    # At the nominal 95 %, fewer than four of five have a chance of 0.02.
    assert inside >= 4


def test_a_stop_and_start_is_a_draw_of_another_host(machines: Double, nephoscope: Command) -> None:
    code, _, said = nephoscope("census", "--count", "6", "--budget", "4s", "--money", "5")
    assert code == 0, said
    code, picked, said = nephoscope(
        "pick", "--by", "stop-start", "--at-most", "4", "--hours", "20", "--money", "2",
        "--budget", "4s", "--bench", BENCH, "--name", "lottery",
    )  # fmt: skip
    assert code == 0, said
    assert len({one["id"] for one in picked["candidates"]}) == 1
    (live,) = machines.live("instance")
    assert live["id"] == picked["selected"]
    assert live["states"][-1][1] == "running"
    assert picked["candidates"][-1]["is_kept"]
    assert len(picked["candidates"]) == picked["launches"]
    assert main(picked["remove"].split()[1:]) == 0
    assert machines.live() == []


def test_a_machine_that_never_answers_is_named_and_replaced_once(
    machines: Double, nephoscope: Command
) -> None:
    machines.settings(host_cpus=())
    machines.fault("silent", next=1)
    code, found, said = nephoscope(
        "census", "--count", "1", "--budget", "2s", "--money", "5", "--boot", "25s"
    )
    assert code == 0, said
    assert found["measured"] == 1, said
    (problem,) = found["problems"]
    assert "never answered" in problem
    assert machines.live() == []
