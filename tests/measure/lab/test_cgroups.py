from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nephoscope.core.errors import Lacking, RunFailed
from nephoscope.measure.lab.limits import cgroups
from nephoscope.measure.lab.limits.cgroups import HostCgroup
from nephoscope.measure.lab.limits.hierarchies import CgroupLayout, layout

Member = Callable[[HostCgroup], int]


def test_a_host_has_a_folder_in_every_tree_and_may_be_made_twice(
    where: CgroupLayout, lab: str
) -> None:
    group = cgroups.host(lab, "a", where)
    folders = group.make()
    assert group.make() == folders
    assert len(folders) == len(group.trees)
    for folder in folders:
        assert folder.parts[-3:] == ("nephoscope", lab, "a")
        assert (folder / "cgroup.procs").is_file()
    assert lab in cgroups.labs(where)
    assert cgroups.lab_cgroups(lab, where) == [folder.parent for folder in folders]


def test_members_are_found_killed_and_gone(where: CgroupLayout, lab: str, member: Member) -> None:
    groups = [cgroups.host(lab, name, where) for name in ("a", "b")]
    pids = []
    for group in groups:
        group.make()
        pids.append(member(group))
    assert groups[0].processes() == [pids[0]]
    assert cgroups.processes(lab, where) == sorted(pids)
    assert groups[0].kill() == 1
    assert cgroups.processes(lab, where) == [pids[1]]
    assert cgroups.remove(lab, where) == 3 * len(groups[0].trees)
    assert cgroups.processes(lab, where) == []
    assert cgroups.lab_cgroups(lab, where) == []
    assert cgroups.remove(lab, where) == 0


def test_groups_below_a_host_go_with_it(where: CgroupLayout, lab: str, member: Member) -> None:
    group = cgroups.host(lab, "a", where)
    group.make()
    inner = HostCgroup(lab, "a/inner", where)
    inner.make()
    pid = member(inner)
    assert group.processes() == [pid]
    cgroups.remove(lab, where)
    assert not any(folder.exists() for folder in group.folders)


def test_groups_that_a_container_engine_made_go_too(where: CgroupLayout, lab: str) -> None:
    cgroups.host(lab, "a", where).make()
    others = [t for t in where.hierarchies if t.version == 1 and not t.controllers]
    for tree in others:
        (tree.root / "nephoscope" / lab / "a").mkdir(parents=True)
    cgroups.remove(lab, where)
    assert not any((tree.root / "nephoscope" / lab).exists() for tree in where.hierarchies)


def test_one_labs_end_leaves_the_other(where: CgroupLayout, lab: str, member: Member) -> None:
    other = f"{lab}x"
    mine, theirs = cgroups.host(lab, "a", where), cgroups.host(other, "a", where)
    mine.make()
    theirs.make()
    pid = member(theirs)
    try:
        cgroups.remove(lab, where)
        assert theirs.processes() == [pid]
        assert all(folder.is_dir() for folder in theirs.folders)
    finally:
        cgroups.remove(other, where)


def test_helpers_are_in_no_group_that_shares_the_cpu(where: CgroupLayout, lab: str) -> None:
    folders = cgroups.keep(lab, where).make()
    assert folders
    if where.version != "v2":
        cpu = where.of("cpu").root
        assert not any(folder.is_relative_to(cpu) for folder in folders)


def test_controllers_are_handed_down_on_version_2(where: CgroupLayout, lab: str) -> None:
    if where.version != "v2":
        return  # version 1 hands nothing down
    group = cgroups.host(lab, "a", where)
    (folder,) = group.make()
    for above in list(folder.parents)[:3]:
        words = (above / "cgroup.subtree_control").read_text().split()
        assert words == ["+cpu", "+cpuset", "+io", "+memory", "+pids"]
    assert (folder / "cgroup.subtree_control").read_text() == ""


def test_a_new_cpuset_can_be_joined(where: CgroupLayout, lab: str) -> None:
    if where.version == "v2":
        return  # version 2 takes what the group above has
    file = cgroups.host(lab, "a", where).file("cpuset", "cpuset.cpus", "cpuset.cpus")
    cgroups.host(lab, "a", where).make()
    assert file.read_text().strip()
    assert file.with_name("cpuset.mems").read_text().strip()


def test_a_value_that_did_not_take_is_told(tmp_path: Path) -> None:
    file = tmp_path / "cpu.weight"
    file.write_text("1")
    assert cgroups.put(file, "7") == "7"
    with pytest.raises(RunFailed, match="holds '8' after '8' was written"):
        cgroups.put(file, "8", lambda found: found == "9")
    with pytest.raises(Lacking, match=r"This kernel has no cpu\.other"):
        cgroups.put(tmp_path / "cpu.other", "1")


def test_a_group_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="is not there"):
        cgroups.put(tmp_path / "none" / "cpu.weight", "1")


V1 = """\
tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/blkio cgroup rw,blkio 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0
"""


def test_layouts_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu io hugetlb\n")
    v2 = f"cgroup2 {tmp_path} cgroup2 rw,nsdelegate 0 0\n"
    assert layout(V1).version == "v1"
    assert layout(v2).version == "v2"
    both = layout(V1 + v2)
    assert both.version == "hybrid"
    assert layout(V1).of("cpuacct").root == Path("/sys/fs/cgroup/cpu,cpuacct")
    assert layout(V1).of("io").root.name == "blkio"
    assert [tree.root.name for tree in layout(V1).hierarchies][-1] == "systemd"
    assert layout(v2).of("cpu").version == 2
    with pytest.raises(Lacking, match="no control group hierarchy with the memory controller"):
        both.of("memory")
    with pytest.raises(Lacking, match="No control group hierarchy is mounted"):
        layout("tmpfs /tmp tmpfs rw 0 0\n")
