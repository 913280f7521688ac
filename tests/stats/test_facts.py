"""Facts by name, whatever is missing."""

from __future__ import annotations

from nephoscope.stats import facts
from stats.judging import GOOD


def test_cache_sizes_leave_out_instructions_and_fall_back_to_cpuid() -> None:
    assert facts.cache_sizes(GOOD) == {"L1": 32768, "L3": 32 << 20}
    by_cpuid = {"caches": {"by_sysfs": None, "by_cpuid": GOOD["caches"]["by_sysfs"]}}
    assert facts.cache_sizes(by_cpuid) == facts.cache_sizes(GOOD)
    assert facts.cache_sizes(None) == {}


def test_a_missing_fact_is_none_and_has_a_reason() -> None:
    assert facts.fact(GOOD, "cpu.no.such.fact") is None
    assert facts.number({"a": True}, "a") is None
    assert facts.text({"a": ""}, "a") is None
    assert facts.items({"a": "text"}, "a") is None
    assert facts.reason(GOOD, "limits.cpu_quota_cpus") == "no limit"
    assert "does not have it" in facts.reason(GOOD, "cpu.governor")


def test_virtual_is_said_only_where_it_is_known() -> None:
    assert facts.is_virtual({"hypervisor": {"name": "KVM"}}) is True
    assert facts.is_virtual({"hypervisor": {"name": "none"}}) is False
    assert facts.is_virtual({"hypervisor": {"name": None, "present": True}}) is True
    assert facts.is_virtual({"hypervisor": {"name": None, "present": None}}) is None
    assert facts.is_virtual(None) is None
