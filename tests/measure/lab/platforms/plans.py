"""A host plan for tests that touch nothing of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nephoscope.measure.lab.handle import HostPlan, Nic, Route
from nephoscope.measure.lab.topology import HostSpec


def plan(folder: Path, platform: str = "qemu", **spec: Any) -> HostPlan:
    """Host `a` of lab `paper`, with two interfaces."""
    groups = Path("/sys/fs/cgroup/cpu/nephoscope/paper/a")
    nics = (
        Nic("eth0", "a.lan", "10.77.0.1", 16, "02:11:22:33:44:55", 1500),
        Nic("eth1", "a.back", "10.78.0.1", 24, "02:66:77:88:99:aa", 9000),
    )
    return HostPlan(
        lab="paper",
        name="a",
        spec=HostSpec.model_validate({"platform": platform, **spec}),
        netns=Path("/run/netns/neph-paper.a"),
        cgroups=(groups,),
        directory=folder,
        nics=nics,
        routes=(Route("10.79.0.0/16", "10.78.0.9"),),
        peers={"a": "10.77.0.1", "b": "10.77.0.2"},
    )
