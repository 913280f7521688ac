from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import pytest

from nephoscope.core.errors import TargetError
from nephoscope.measure.targets.local import LocalTarget


def test_work_folders_of_killed_processes_are_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, probe: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    # No process has this number: it is above the kernel's limit.
    left, other = tmp_path / "nephoscope-work-4194400-x", tmp_path / "someone-elses"
    living = tmp_path / f"nephoscope-work-{os.getppid()}-x"
    for folder in (left, other, living):
        folder.mkdir()

    async def opened() -> None:
        target = LocalTarget()
        await target.open()
        path = await target.put(probe, "copy")
        assert Path(path).parent.parent == tmp_path
        await target.close()

    asyncio.run(opened())
    assert sorted(tmp_path.iterdir()) == sorted([other, living])


def test_a_directory_that_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TargetError, match=f"no directory {tmp_path}/sub to start"):
        asyncio.run(LocalTarget(directory="sub").open())
    tmp_path.rmdir()
    with pytest.raises(TargetError, match="the current directory does not exist any more"):
        asyncio.run(LocalTarget().open())


def test_a_prefix_that_fails_is_to_blame_and_not_the_probe() -> None:
    target = LocalTarget("there", prefix=("sh", "-c", "echo No such place. >&2; exit 3"))
    with pytest.raises(TargetError, match="Its last words: No such place") as caught:
        asyncio.run(target.open())
    assert caught.value.hint == "Run `sh -c 'echo No such place. >&2; exit 3' true` to see why."
