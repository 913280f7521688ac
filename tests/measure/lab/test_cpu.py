from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nephoscope.core.errors import Lacking, UsageError
from nephoscope.measure.lab.limits import cgroups, cpu
from nephoscope.measure.lab.limits.cgroups import HostCgroup
from nephoscope.measure.lab.limits.hierarchies import CgroupLayout
from nephoscope.measure.lab.topology import CpuSpec


@pytest.fixture
def group(where: CgroupLayout, lab: str) -> HostCgroup:
    made = cgroups.host(lab, "a", where)
    made.make()
    return made


def test_settings_are_read_back_and_taken_back(group: HostCgroup) -> None:
    last = cpu.machine_cpus()[-1]
    cpus = group.file("cpuset", "cpuset.cpus", "cpuset.cpus")
    cap = group.file("cpu", "cpu.cfs_quota_us", "cpu.max")
    weight = group.file("cpu", "cpu.shares", "cpu.weight")
    cpu.apply(group, CpuSpec(cpus=(last,), weight=300, cap=0.25))
    assert cpu.numbers_of(cpus.read_text()) == [last]
    assert int(cap.read_text().split()[0]) == 25_000
    assert int(weight.read_text()) == (300 if group.version("cpu") == 2 else 3072)
    cpu.apply(group, CpuSpec())
    assert cpu.numbers_of(cpus.read_text()) == cpu.machine_cpus()
    assert cap.read_text().split()[0] in ("max", "-1")


def test_a_cap_may_grow_and_shrink_with_its_period(group: HostCgroup) -> None:
    for cap_cpus, period_us in ((1.5, 100_000), (0.5, 10_000), (0.01, 1_000_000), (2.0, 20_000)):
        assert cpu.set_cap(group, cap_cpus, period_us) == cap_cpus


@pytest.mark.parametrize(
    ("weight", "shares"), [(1, 10), (100, 1024), (300, 3072), (10_000, 102400)]
)
def test_weights_become_shares_in_their_ratio(weight: int, shares: int) -> None:
    assert cpu.shares_of(weight) == shares


def test_what_cannot_be_meant_is_one_sentence(group: HostCgroup) -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        CpuSpec(weight=0)
    with pytest.raises(UsageError, match=r"no CPU 4095\."):
        cpu.set_cpus(group, [0, 4095])
    with pytest.raises(ValidationError, match=r"greater than or equal to 0\.01"):
        CpuSpec(cap=0.001)


def test_a_reservation_in_a_part_of_the_cpus_is_refused_before_the_kernel_does(
    group: HostCgroup,
) -> None:
    have = cpu.machine_cpus()
    cpu.check_reservation(group)
    cpu.check_reservation(group, have)
    if len(have) > 1:
        with pytest.raises(Lacking, match="takes no reservation in a cpuset of CPUs"):
            cpu.check_reservation(group, have[:1])


@given(st.sets(st.integers(0, 300), min_size=1))
def test_lists_of_cpus_go_there_and_back(numbers: set[int]) -> None:
    assert cpu.numbers_of(cpu.text_of(numbers)) == sorted(numbers)


def test_lists_of_cpus_are_the_kernels() -> None:
    assert cpu.text_of([3, 0, 1]) == "0-1,3"
    assert cpu.numbers_of("0-1,3\n") == [0, 1, 3]
    assert cpu.numbers_of("\n") == []
