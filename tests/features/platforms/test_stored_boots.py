"""The boot timeline of a run's `host.boot` trials."""

from __future__ import annotations

import pytest
from tests.features.platforms.made import line
from tests.results.made import run_data

from nephoscope.core.model import RunResult
from nephoscope.features.platforms import boots_section, stored_boots
from nephoscope.report.blocks import Chart

BOOTS = 6


def lines(target: str, **segments: float) -> list[object]:
    return [
        line("host.boot", metric, target, {"level": "boot"}, [value + at for at in range(BOOTS)])
        for metric, value in segments.items()
    ]


QEMU = lines("qemu", boot_request_ns=3e8, boot_kernel_ns=2e9, boot_userland_ns=7e8)
QEMU += lines("qemu", boot_reachable_ns=3e9)
BARE = lines("bare", boot_reachable_ns=2e7)


def test_segments_of_stored_boots_add_up() -> None:
    found = stored_boots.analyse(run_data(metrics=[*QEMU, *BARE]))  # type: ignore[list-item]
    assert found is not None
    qemu, bare = found.boots
    assert qemu.name == "qemu"
    assert list(qemu.segments) == ["kernel", "userland", "reachable"]
    assert qemu.marks["userland"].value == pytest.approx(2.3e9, rel=1e-6)
    assert qemu.marks["reachable"].n == BOOTS
    assert list(bare.segments) == ["reachable"]
    assert qemu.memory is None


def test_the_timeline_is_a_section_of_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    found = stored_boots.analyse(run_data(metrics=[*QEMU, *BARE]))  # type: ignore[list-item]
    monkeypatch.setattr(RunResult, "part", lambda self, kind: found)
    section = boots_section.build(object.__new__(RunResult))
    assert section is not None
    (chart,) = [block for block in section.blocks if isinstance(block, Chart)]
    named = {trace["name"]: trace for trace in chart.figure["data"]}
    assert named["until the kernel"]["y"] == [0], "a bare host has no bar there, not one of 0"
    assert named["until reachable"]["y"] == [0, 1]
    monkeypatch.setattr(RunResult, "part", lambda self, kind: None)
    assert boots_section.build(object.__new__(RunResult)) is None


def test_a_run_without_boots_has_none() -> None:
    assert stored_boots.analyse(run_data()) is None


def test_launches_are_counted_by_type_and_zone_and_by_image_where_those_vary() -> None:
    machine = {"type": "t3.micro", "zone": "a", "region": "r", "image": "one"}
    metrics = []
    for name in ("m-1", "m-2"):
        made = lines(name, boot_answer_ns=1e9, boot_running_ns=4e9, boot_reachable_ns=9e9)
        # The kernel may start before the list shows that the machine runs.
        metrics += made + lines(name, boot_request_ns=3e9)

    def names(second: str) -> dict[str, int]:
        rented = {"m-1": machine, "m-2": {**machine, "image": second}}
        data = run_data(metrics=metrics, manifest={"rented": rented})  # type: ignore[arg-type]
        found = stored_boots.analyse(data)
        assert found is not None
        for boot in found.boots:
            assert list(boot.segments) == ["answer", "running", "reachable"]
            assert boot.segments["running"].value == pytest.approx(3e9)
            assert boot.marks["running"].value == pytest.approx(4e9, rel=1e-6)
        return {boot.name: boot.marks["reachable"].n for boot in found.boots}

    assert names("one") == {"t3.micro in a": 2 * BOOTS}
    assert names("two") == {"t3.micro in a, one": BOOTS, "t3.micro in a, two": BOOTS}
