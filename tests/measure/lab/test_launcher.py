from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import nephoscope
from nephoscope.core.errors import Lacking
from nephoscope.core.programs import find_launcher
from nephoscope.measure.lab.commands import entering


def test_the_environment_names_a_launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NEPHOSCOPE_LAB", str(tmp_path / "none"))
    with pytest.raises(Lacking, match=r"NEPHOSCOPE_LAB names .* no such file") as caught:
        find_launcher()
    assert "`make survey`" in caught.value.hint


def test_it_is_of_this_version() -> None:
    done = subprocess.run([find_launcher(), "version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"nephoscope-lab {nephoscope.__version__}\n"


def test_groups_come_before_the_network_and_the_dashes_last() -> None:
    words = entering(netns=Path("/n"), cgroups=[Path("/a"), Path("/b")], with_parent=True, nice=-5)
    assert words[1:] == [
        *("enter", "--cgroup", "/a", "--cgroup", "/b", "--netns", "/n"),
        *("--die-with-parent", "--nice", "-5", "--"),
    ]


def test_the_program_behind_it_keeps_its_exit_code() -> None:
    done = subprocess.run([*entering(nice=3), "sh", "-c", "exit $(nice)"], check=False)
    assert done.returncode == 3
