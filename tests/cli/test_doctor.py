"""doctor: every question is answered, whatever the machine hides, and the exit code is right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nephoscope import command_line
from nephoscope.cli.commands.checks import frame, kernel, limits, programs, table
from nephoscope.cli.commands.checks import places as store_places
from nephoscope.cli.commands.checks.frame import LACKS, LIMITED, WORKS, CheckAnswer, Places


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "store", tmp_path)


@pytest.mark.parametrize("check", table.CHECKS, ids=lambda check: check.__name__)
def test_every_check_says_what_it_looks_at_and_answers(
    check: Callable[[Places], CheckAnswer], places: Places
) -> None:
    assert check.__doc__
    finding = check(places)
    assert finding.state in (WORKS, LIMITED, LACKS)
    assert finding.name
    assert finding.detail
    if finding.state == LACKS:
        assert finding.fix


@pytest.mark.parametrize("check", table.CHECKS, ids=lambda check: check.__name__)
def test_no_check_fails_where_proc_and_sys_are_hidden(
    check: Callable[[Places], CheckAnswer], places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame, "read", lambda path: None)
    assert check(places).detail


def test_every_check_that_is_written_is_in_the_table() -> None:
    written = [
        thing
        for module in (kernel, limits, store_places, programs)
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and callable(thing)
        and getattr(thing, "__module__", "") == module.__name__
    ]
    assert set(written) == set(table.CHECKS)
    assert len(set(table.CHECKS)) == len(table.CHECKS)


def test_names_of_checks_are_unique(places: Places) -> None:
    names = [check(places).name for check in table.CHECKS]
    assert len(set(names)) == len(names)


def test_a_missing_probe_is_exit_code_4_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEPHOSCOPE_PROBE", str(tmp_path / "none"))
    assert command_line.main(["doctor"]) == 4
    out = capsys.readouterr().out
    assert "!!  probe" in out
    assert "cannot run a survey. Fix first: probe" in out
    assert command_line.main(["doctor", "--json"]) == 4
    told = json.loads(capsys.readouterr().out)
    assert told["ready"] is False


def test_a_machine_that_has_it_all_is_ready(
    probe: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert command_line.main(["doctor", "--store", str(tmp_path / "store")]) == 0
    out = capsys.readouterr().out
    assert "This host is ready for a survey." in out
    # A command to copy and a path of the user's are not broken into lines.
    prose = [line for line in out.splitlines() if "fix: " not in line and "/" not in line]
    assert max(map(len, prose)) < 80
    assert not list(tmp_path.glob(".nephoscope*")), "a check left a file behind"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {
                "/proc/self/cgroup": "3:cpu,cpuacct:/box\n2:memory:/box\n1:name=systemd:/",
                "/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "50000",
                "/sys/fs/cgroup/cpu/box/cpu.cfs_period_us": "100000",
                "/sys/fs/cgroup/memory/box/memory.limit_in_bytes": str(1 << 30),
            },
            "version 1, CPU quota 0.50 CPUs; memory limit 1.00 GiB",
        ),
        (
            {
                "/proc/self/cgroup": "0::/box",
                "/sys/fs/cgroup/box/cpu.max": "150000 100000",
                "/sys/fs/cgroup/box/memory.max": "max",
            },
            "version 2, CPU quota 1.50 CPUs",
        ),
        (
            {"/proc/self/cgroup": "0::/", "/sys/fs/cgroup/cpu.max": "max 100000"},
            "version 2, no limit on CPU or memory",
        ),
    ],
)
def test_limits_of_both_versions_of_control_groups_are_read(
    files: dict[str, str], expected: str, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame, "read", files.get)
    assert limits.cgroup(places).detail == expected


def test_a_store_that_cannot_be_written_lacks(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    finding = store_places.store(Places(tmp_path / "file" / "store", tmp_path))
    assert (finding.state, finding.needed) == (LACKS, True)
    assert "not a directory" in finding.detail
    assert "--store" in finding.fix
