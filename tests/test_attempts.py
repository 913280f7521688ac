"""A measurement is repeated because of what the counters show, and never because it failed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.attempts import Counters, Undecided, Unmeasurable, attempt, disturbance
from tests.standstill import Standstill

CALM = Counters(at=0.0, steal=(1.0, 2.0), user=5.0, own_user=3.0, others=7.0, pressure=0.1)


def later(before: Counters, **changed: object) -> Counters:
    return replace(before, at=before.at + 2.0, **changed)  # type: ignore[arg-type]


class Machine:
    """Counters of a machine that is disturbed during the first attempts."""

    def __init__(self, disturbed: int) -> None:
        self.left = disturbed
        self.now = CALM
        self.readings = 0

    def read(self) -> Counters:
        self.readings += 1
        if self.readings % 2 == 0:
            taken = 0.05 if self.left > 0 else 0.0
            self.left -= 1
            self.now = later(self.now, others=self.now.others + taken)
        return self.now


def tried(held: list[bool], disturbed: int) -> tuple[int, str | None]:
    """Number of measurements, and the failure."""
    number = 0

    def measure() -> tuple[str, bool]:
        nonlocal number
        number += 1
        return f"value {number}", held[number - 1]

    try:
        attempt("a truth", measure, read=Machine(disturbed).read, pauses_s=(0, 0))
    except (pytest.fail.Exception, Undecided) as failure:
        return number, str(failure)
    return number, None


def test_a_bound_that_is_held_needs_one_attempt() -> None:
    assert tried([True], disturbed=0) == (1, None)
    assert tried([True], disturbed=1) == (1, None)


def test_a_miss_that_nothing_disturbed_is_a_failure_at_once() -> None:
    number, failure = tried([False, True], disturbed=0)
    assert number == 1
    assert failure is not None
    assert "nothing disturbed it" in failure
    assert "value 1" in failure


def test_a_disturbed_miss_is_measured_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert tried([False, True], disturbed=1) == (2, None)
    out = capsys.readouterr().out
    assert "a truth, attempt 1: value 1 (steal 0 ms, other programs 50 ms" in out
    assert "measured again because of other programs 50 ms in 2.0 s" in out
    assert "a truth, attempt 2: value 2" in out


def test_when_every_attempt_is_disturbed_nothing_is_decided() -> None:
    number, failure = tried([False] * 3, disturbed=3)
    assert number == 3
    assert failure is not None
    assert "all 3 attempts were disturbed" in failure
    assert "value 2 (steal 0 ms, other programs 50 ms" in failure


def test_an_undisturbed_miss_among_disturbed_ones_is_a_failure() -> None:
    number, failure = tried([False] * 3, disturbed=1)
    assert number == 2
    assert failure is not None
    assert "nothing disturbed it" in failure


def asserted(right: list[bool], disturbed: int) -> int:
    """Number of measurements that asserted what is right in some of them only."""
    number = 0

    def measure() -> tuple[str, bool]:
        nonlocal number
        number += 1
        assert right[number - 1], "an own mistake"
        return "measured", True

    attempt("a truth", measure, read=Machine(disturbed).read, pauses_s=(0, 0))
    return number


def test_an_assertion_in_a_measurement_is_a_bound() -> None:
    assert asserted([False, True], disturbed=1) == 2
    with pytest.raises(pytest.fail.Exception, match=r"nothing disturbed it.*an own mistake"):
        asserted([False, True], disturbed=0)
    # What no attempt gets right is a failure, however disturbed they were.
    with pytest.raises(AssertionError, match="an own mistake") as failure:
        asserted([False] * 3, disturbed=3)
    assert not isinstance(failure.value, Undecided)


def outcome_of(tests: str, tmp_path: Path) -> tuple[int, str]:
    """Exit status and output of a run of these tests with the suite's own hooks."""
    (tmp_path / "test_it.py").write_text(
        "import pytest\nfrom tests.attempts import Undecided\n" + tests, encoding="utf-8"
    )
    words = ["-q", "-p", "tests.undecided", "-p", "no:cacheprovider", "--strict-markers"]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *words,
            "-c",
            "/dev/null",
            f"--rootdir={tmp_path}",
            tmp_path,
        ],
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


MANY = """
@pytest.mark.parametrize("number", range({all}))
def test_measured(number):
    if number < {undecided}:
        raise Undecided(f"truth {{number}}: all attempts were disturbed (steal 90 ms)")
"""


def test_few_undecided_tests_are_named_and_many_fail_the_run(tmp_path: Path) -> None:
    code, out = outcome_of(MANY.format(all=100, undecided=3), tmp_path)
    assert code == 0, out
    assert "3 undecided" in out
    assert "truth 2: all attempts were disturbed (steal 90 ms)" in out
    code, out = outcome_of(MANY.format(all=100, undecided=4), tmp_path)
    assert code == 1, out
    assert "4 of 100 tests are undecided, and 3 may be" in out


def test_a_failure_beside_undecided_tests_fails_the_run(tmp_path: Path) -> None:
    code, out = outcome_of(
        MANY.format(all=100, undecided=1) + "def test_wrong():\n    assert False\n", tmp_path
    )
    assert code == 1, out
    assert "1 failed" in out


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, None),
        ({"steal": (1.0, 2.02)}, "steal 20 ms"),
        ({"steal": (1.01, 2.0)}, "steal 10 ms"),
        ({"others": 7.02}, "other programs 20 ms"),
        ({"others": 7.005}, None),
        # Programs that are not in /proc here show in the machine's sum.
        ({"user": 6.0, "own_user": 3.5}, "other programs 500 ms"),
        ({"user": 6.0, "own_user": 3.95}, None),
        ({"pressure": 0.2}, "CPU pressure 100 ms"),
        ({"pressure": 0.105}, None),
        ({"pressure": None}, None),
    ],
)
def test_what_counts_as_a_disturbance(changed: dict[str, object], reason: str | None) -> None:
    during = disturbance(CALM, later(CALM, **changed))
    reasons = during.reasons(contends=False)
    assert bool(reasons) == (reason is not None)
    assert reason is None or reasons[0].startswith(reason)
    assert "pressure" in during.text


def test_where_programs_of_the_test_compete_pressure_is_no_reason() -> None:
    during = disturbance(CALM, later(CALM, pressure=1.0))
    assert during.reasons(contends=True) == []
    assert len(during.reasons(contends=False)) == 1


def burn(seconds: float) -> list[str]:
    """A program that uses a CPU for so long, hardly in the kernel."""
    loop = f"import time\nwhile time.process_time() < {seconds}: sum(range(10_000))"
    return [sys.executable, "-c", loop]


def test_a_program_that_is_no_descendant_is_another() -> None:
    before = Counters.read()
    subprocess.run(burn(0.3), check=True)
    middle = Counters.read()
    assert middle.own_user - before.own_user > 0.25
    # Its parent has ended: it is no descendant of this test any more.
    script = '"$0" "$@" & echo $!'
    words = ["setsid", "sh", "-c", script, *burn(0.3)]
    pid = int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    while os.path.exists(f"/proc/{pid}"):
        time.sleep(0.02)
    after = Counters.read()
    assert after.others - middle.others > 0.25
    assert after.own_user - middle.own_user < 0.25


def test_a_witness_of_every_attempt_says_that_it_cannot_be_measured() -> None:
    with pytest.raises(Unmeasurable, match="no cache"):
        attempt("x", lambda: ("no cache", False), witness=lambda: "taken", pauses_s=[0, 0])
    said = iter(["taken", "", "taken"])
    with pytest.raises(Undecided) as undecided:
        attempt(
            "x",
            lambda: ("low", False),
            witness=lambda: next(said),
            read=Machine(3).read,
            pauses_s=[0, 0],
        )
    assert undecided.type is Undecided


def test_cpus_that_stood_are_a_witness() -> None:
    """The process of the witness is stopped for a while; at rest it is not."""
    code = (
        "import sys, time\n"
        "from tests.standstill import Standstill\n"
        "with Standstill() as cpus:\n"
        "    print('ready', flush=True)\n"
        "    sys.stdin.readline()\n"
        "print(cpus.longest_s, repr(cpus.reason(0.25)), sep=';')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        child.send_signal(signal.SIGCONT)
        child.stdin.write("\n")
        child.stdin.close()
        longest_s, reason = child.stdout.read().strip().split(";")
    # Less by the moment in which the signal came: one look at most.
    assert float(longest_s) > 0.29
    assert reason.startswith("'a CPU that ran nothing for ")
    assert Standstill().reason(0) == ""
