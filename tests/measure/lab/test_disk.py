from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.hardware import Feature, lacking

from nephoscope.core.errors import Lacking, UsageError
from nephoscope.measure.lab.limits import cgroups, disk
from nephoscope.measure.lab.limits.hierarchies import Layout
from nephoscope.measure.lab.topology import DiskSpec

HERE = Path(__file__)


def on_disk() -> bool:
    try:
        disk.device_of(HERE)
    except Lacking:
        return False
    return True


def test_limits_are_set_and_taken_back(where: Layout, lab: str) -> None:
    group = cgroups.host(lab, "a", where)
    group.make()
    if not (on_disk() and disk.supported(group)):
        lacking(Feature.DISK, "and the controller blkio or io")
    file = group.file("io", "blkio.throttle.read_bps_device", "io.max")
    number = disk.device_of(HERE).number
    disk.apply(group, HERE, DiskSpec.model_validate({"read": 20e6, "write": 10e6}))
    assert f"{number} " in file.read_text()
    assert "20000000" in file.read_text()
    disk.apply(group, HERE, DiskSpec.model_validate({"write": 1e6}))
    assert "20000000" not in file.read_text()
    disk.apply(group, HERE, DiskSpec())
    assert "1000000" not in file.read_text()


def test_a_partition_is_its_disk_and_the_disk_is_there() -> None:
    for entry in Path("/sys/dev/block").iterdir():
        whole = disk._whole(entry.name, HERE)
        assert not (Path("/sys/dev/block") / whole.number / "partition").exists()
        assert (Path("/sys/block") / whole.name).exists()


def test_a_filesystem_without_a_disk_is_told() -> None:
    with pytest.raises(Lacking, match="is on a proc filesystem, which has no disk") as caught:
        disk.device_of(Path("/proc/version"))
    assert caught.value.exit_code == 4


def test_an_overlay_is_the_disk_of_its_upper_layer() -> None:
    if not on_disk():
        lacking(Feature.DISK)
    upper = str(HERE.parent)
    overlay = f"overlay /proc overlay rw,lowerdir=/l,upperdir={upper},workdir=/w 0 0\n"
    mounts = f"proc / proc rw 0 0\n{overlay}"
    assert disk.device_of(Path("/proc/version"), mounts) == disk.device_of(HERE)


def test_what_is_not_there_and_what_is_no_rate_is_told() -> None:
    with pytest.raises(UsageError, match="cannot be looked at"):
        disk.device_of(Path("/no/such/path"))
    with pytest.raises(ValidationError, match="greater than or equal to 4096"):
        DiskSpec.model_validate({"read": 0})
