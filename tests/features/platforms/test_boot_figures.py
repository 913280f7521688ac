"""Mean boot times from drawn boots."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.features.platforms.made import MEANS_NS, MEMORY, drawn_boots

from nephoscope.features.platforms.boot_figures import figures


@pytest.mark.parametrize("platform", MEANS_NS)
def test_segments_add_up_to_the_whole_boot(platform: str) -> None:
    found = figures(platform, drawn_boots(platform), {})
    whole = found.marks["reachable"]
    assert sum(one.value for one in found.segments.values()) == pytest.approx(whole.value)
    assert list(found.segments) == list(MEANS_NS[platform])
    assert whole.n == 6
    assert whole.unit == "ns"
    assert whole.low is not None
    assert whole.high is not None
    assert whole.low < MEANS_NS[platform]["reachable"] < whole.high


def test_a_mark_that_a_platform_lacks_has_a_reason_and_no_zero() -> None:
    found = figures("bare", drawn_boots("bare"), {"kernel": "the machine's own kernel"})
    assert set(found.segments) == {"reachable"}
    assert found.reasons["kernel"] == "the machine's own kernel"
    assert set(found.reasons) == {"output", "kernel", "userland", "memory"}
    assert found.memory is None


def test_a_mark_of_some_boots_only_is_part_of_the_next_segment() -> None:
    boots = drawn_boots("uml")
    first = {mark: at for mark, at in boots[0].marks_ns.items() if mark != "output"}
    found = figures("uml", [replace(boots[0], marks_ns=first), *boots[1:]], {})
    assert "output" not in found.segments
    assert found.reasons["output"].endswith("in 5 of 6 boots only")
    whole = figures("uml", boots, {})
    assert found.segments["kernel"].value == pytest.approx(
        whole.segments["output"].value + whole.segments["kernel"].value
    )


def test_memory_has_an_interval_over_boots() -> None:
    memory = figures("uml", drawn_boots("uml"), {}).memory
    assert memory is not None
    assert memory.n == 6
    assert memory.unit == "bytes"
    assert memory.low is not None
    assert memory.high is not None
    assert memory.low < MEMORY["uml"] < memory.high


def test_a_platform_that_never_booted_has_reasons_only() -> None:
    found = figures("uml", [], {}, ["It did not boot."])
    assert found.marks == {}
    assert found.resolution_ns is None
    assert set(found.reasons.values()) == {"no boot was measured"}
    assert found.failures == ("It did not boot.",)
