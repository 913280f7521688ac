from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest

from nephoscope.core import leases
from nephoscope.core.errors import TargetError
from nephoscope.measure.targets.local import LocalTarget


def test_a_work_folder_is_a_scratch_folder_and_goes_with_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, probe: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    async def opened() -> None:
        target = LocalTarget()
        await target.open()
        path = Path(await target.put(probe, "copy"))
        assert leases.scratch_folders(tmp_path) == [path.parent]
        await target.close()

    asyncio.run(opened())
    assert list(tmp_path.iterdir()) == []


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
