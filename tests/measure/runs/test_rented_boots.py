"""Marks of the boot of a rented machine, from what its guest shows."""

from __future__ import annotations

import pytest

from nephoscope.measure.lab.boot import BootTimes
from nephoscope.measure.runs.rented_boots import guest_marks
from nephoscope.measure.runs.trials.boots import segments

SYSTEMD = "Startup finished in 1.204s (kernel) + 3.211s (userspace) = 4.415s"
INITRD = "Startup finished in 812ms (kernel) + 1.5s (initrd) + 1min 2.345s (userspace) = 1min 4s"
FIRMWARE = "Startup finished in 3s (firmware) + 2s (loader) + 1.5s (kernel) + 9s (userspace) = 15s"


@pytest.mark.parametrize(
    ("text", "kernel_s", "userland_s"),
    [
        (f"6.50 11.2\n{SYSTEMD}\ngraphical.target reached", 13.5, 14.704),
        (f"6.50 11.2\n{INITRD}", 13.5, 15.812),
        (f"6.50 11.2\n{FIRMWARE}", 13.5, 15.0),
        ("6.50 11.2\n", 13.5, None),
        ("6.50 11.2\nBootup is not yet finished.", 13.5, None),
        # A kernel that is older than the call is that of the host below a container.
        (f"86400.1 1.0\n{SYSTEMD}", None, None),
        ("", None, None),
        ("no such file", None, None),
    ],
)
def test_kernel_and_init_are_dated_by_the_guest(
    text: str, kernel_s: float | None, userland_s: float | None
) -> None:
    found = guest_marks(text, 20.0)
    expected = [None if s is None else pytest.approx(s * 1e9) for s in (kernel_s, userland_s)]
    assert list(found) == expected


def test_the_segments_of_a_launch_add_up_and_missing_ones_are_left_out() -> None:
    whole = BootTimes(8, 11, 20, answer_ns=1, running_ns=5)
    values = {sample.metric: sample.value for sample in segments(whole)}
    assert values == {
        "boot_reachable_ns": 20,
        "boot_answer_ns": 1,
        "boot_running_ns": 5,
        "boot_request_ns": 8,
        "boot_kernel_ns": 3,
        "boot_userland_ns": 9,
    }
    container = {one.metric for one in segments(BootTimes(None, None, 20, answer_ns=1))}
    assert container == {"boot_reachable_ns", "boot_answer_ns"}
