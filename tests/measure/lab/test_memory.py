from __future__ import annotations

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.measure.lab.limits import cgroups, memory
from nephoscope.measure.lab.limits.hierarchies import CgroupLayout

MIB = 1 << 20


def test_a_limit_is_set_raised_lowered_and_taken_back(where: CgroupLayout, lab: str) -> None:
    group = cgroups.host(lab, "a", where)
    group.make()
    file = group.file("memory", "memory.limit_in_bytes", "memory.max")
    for wanted in (64 * MIB, 256 * MIB, 32 * MIB):
        memory.apply(group, wanted)
        assert int(file.read_text()) == wanted
    memory.apply(group, None)
    assert file.read_text().strip() == "max" or int(file.read_text()) >= 1 << 60
    assert memory.killed(group) == (1 if where.version == "v2" else 0)  # the made-up tree says 1


def test_swap_is_inside_the_limit(where: CgroupLayout, lab: str) -> None:
    group = cgroups.host(lab, "a", where)
    group.make()
    memory.apply(group, 64 * MIB)
    if group.version("memory") == 2:
        assert group.file("memory", "", "memory.swap.max").read_text() == "0"
    else:
        both = group.file("memory", "memory.memsw.limit_in_bytes", "")
        assert not both.exists() or int(both.read_text()) == 64 * MIB


def test_a_limit_that_no_program_fits_into_is_refused(where: CgroupLayout, lab: str) -> None:
    group = cgroups.host(lab, "a", where)
    group.make()
    with pytest.raises(UsageError, match="too small"):
        memory.apply(group, 4096)
