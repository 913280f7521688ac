"""Boot segments from a console whose lines and moments the test itself sets."""

from __future__ import annotations

import asyncio
import itertools
import time
from pathlib import Path

import pytest
from tests.attempts import attempt

from nephoscope.core.documents import to_json
from nephoscope.core.errors import RunFailed
from nephoscope.measure.lab import boot
from nephoscope.measure.lab.boot import BootTimes, Console

KERNEL = "[    0.000000] Linux version 6.1.0 (someone@somewhere)\r\n"


async def _never() -> bool:
    return False


def _watch(
    console: Path, script: list[tuple[float, str]], answer_s: float, **changes: object
) -> BootTimes:
    """Plays (time, text) onto a console while it is watched; answers from `answer_s` on."""

    async def play() -> BootTimes:
        began = time.monotonic_ns()

        def since() -> float:
            return (time.monotonic_ns() - began) / 1e9

        async def write() -> None:
            for at, text in script:
                await asyncio.sleep(at - since())
                with console.open("a") as file:
                    file.write(text)

        async def answers() -> bool:
            return since() >= answer_s

        writer = asyncio.create_task(write())
        alive = changes.get("alive", lambda: True)
        assert callable(alive)
        try:
            return await boot.watch(
                "host a (qemu)",
                began,
                Console(console),
                alive,
                answers,
                float(str(changes.get("timeout_s", 5))),
            )
        finally:
            writer.cancel()

    return asyncio.run(play())


def test_each_mark_has_its_time(tmp_path: Path) -> None:
    # The console is looked at every 5 ms; 100 ms are for a machine that is busy.
    script = [(0.2, KERNEL), (0.5, "nephoscope: user"), (0.55, "land\r\n")]
    numbers = itertools.count()

    def measure() -> tuple[str, bool]:
        times = _watch(tmp_path / f"console-{next(numbers)}", script, 0.9)
        marks = dict(times.marks())
        assert marks.pop("output") is None
        assert times.reasons["output"].endswith("its kernel's first line were seen at once")
        late_s = [
            seen / 1e9 - told
            for seen, told in zip(marks.values(), (0.2, 0.55, 0.9), strict=True)
            if seen is not None
        ]
        text = ", ".join(f"{1e3 * late:.0f} ms" for late in late_s)
        return f"late by {text}", len(late_s) == 3 and all(0 <= late < 0.1 for late in late_s)

    attempt("marks of a boot", measure)


def test_output_before_the_kernel_is_a_mark(tmp_path: Path) -> None:
    console = Console(tmp_path / "console")
    (tmp_path / "console").write_text("Checking for ptrace\n")
    console.poll()
    (tmp_path / "console").write_text("Checking for ptrace\n" + KERNEL + "nephoscope: userland\n")

    async def answers() -> bool:
        return True

    began = console.output_ns or 0
    times = asyncio.run(boot.watch("host a (uml)", began - 5, console, lambda: True, answers, 9))
    assert times.output_ns == 5
    assert times.kernel_ns is not None
    assert times.kernel_ns > 5
    assert dict(times.reasons) == {}


def test_nothing_answers_before_userland(tmp_path: Path) -> None:
    times = _watch(tmp_path / "console", [(0.3, "nephoscope: userland\n")], 0.0)
    assert times.userland_ns is not None
    assert times.userland_ns <= times.reachable_ns
    assert times.kernel_ns is None
    assert times.reasons["kernel"] == "its kernel's first line was not seen on the console"
    assert times.reasons["output"].endswith("its init's first line were seen at once")


@pytest.mark.parametrize(
    ("script", "phase"),
    [
        ([], "nothing of it had begun"),
        ([(0.0, KERNEL)], "its kernel had begun, its userland had not"),
        ([(0.0, KERNEL + "nephoscope: userland\n")], "its userland had begun"),
    ],
)
def test_a_host_that_never_boots(
    tmp_path: Path, script: list[tuple[float, str]], phase: str
) -> None:
    script.append((0.05, "\x1b[0mKernel panic - not syncing\r\n\r\n"))
    with pytest.raises(RunFailed) as caught:
        _watch(tmp_path / "console", script, 99, timeout_s=1.4)
    assert caught.value.exit_code == 3
    assert caught.value.message == (
        f"host a (qemu) was not reachable in 1 s: {phase}; its last line was "
        "'Kernel panic - not syncing'."
    )


def test_a_guest_that_ends_is_told_at_once(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(RunFailed, match=r"host a \(qemu\) ended: its kernel had begun"):
        _watch(
            tmp_path / "console", [(0.0, KERNEL)], 99, alive=lambda: time.monotonic() < began + 0.3
        )
    assert time.monotonic() - began < 30  # it would wait for 99 s


def test_an_earlier_boot_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "console"
    log.write_text("nephoscope: userland\n")
    console = Console(log)
    console.skip()
    console.poll()
    assert console.seen == {}
    with log.open("a") as file:
        file.write("nephoscope: userland\n")
    console.poll()
    assert boot.USERLAND_MARK in console.seen


def test_times_are_written_down_and_read_again() -> None:
    times = BootTimes(None, 5, 9, {"kernel": "a container runs on the machine's own kernel"})
    assert BootTimes(**to_json(times)) == times
    assert times.says() == "userland 0.00 s, reachable 0.00 s"


def test_a_look_that_came_late_is_told(tmp_path: Path) -> None:
    log = tmp_path / "console"
    console = Console(log)
    console.poll()
    log.write_text(KERNEL)
    time.sleep(0.2)
    console.poll()
    assert 200e6 <= console.resolution_ns < 2e9
    late = BootTimes(1, 2, 3, {}, 200_000_000)
    assert late.says().endswith(", seen up to 0.20 s late")
    assert BootTimes(**to_json(late)) == late


def test_a_small_share_gets_more_time() -> None:
    assert boot.timeout_s(1.5) == 60
    assert boot.timeout_s(0.1) == pytest.approx(600)
