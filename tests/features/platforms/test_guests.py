"""Memory of guests, and guests that come and go, without a lab."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from nephoscope.core.errors import RunFailed
from nephoscope.features.platforms import guests
from nephoscope.features.platforms.density import NoFurtherGuest

ROLLUP = """\
55d0c0a00000-7ffd7c1f2000 ---p 00000000 00:00 0                          [rollup]
Rss:              128044 kB
Pss:               63180 kB
Pss_Dirty:         61000 kB
"""
GIB = 1 << 30


def test_pss_is_the_line_of_all_pages() -> None:
    assert guests.pss_bytes(ROLLUP) == 63180 << 10
    with pytest.raises(ValueError, match="unpack"):
        guests.pss_bytes("Rss: 1 kB\n")


def test_memory_adds_up_processes_and_leaves_out_those_that_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import os

    def group(pids: list[int]) -> Any:
        return lambda lab, host: SimpleNamespace(processes=lambda: pids)

    monkeypatch.setattr(guests.cgroups, "host", group([os.getpid(), 2**22 + 1]))
    own = guests.memory_of("any")
    assert own is not None
    assert own > 1 << 20
    monkeypatch.setattr(guests.cgroups, "host", group([]))
    assert guests.memory_of("any") is None


def test_this_machine_states_its_memory() -> None:
    available, total = guests.free_memory()
    assert 0 < available <= total


@pytest.mark.parametrize(
    ("need", "available", "short"), [(GIB, 3 * GIB, False), (GIB, int(1.9 * GIB), True)]
)
def test_a_tenth_of_the_memory_stays_free(need: int, available: int, short: bool) -> None:
    assert bool(guests.memory_shortage(need, available, 10 * GIB)) is short


def test_the_shortage_is_stated_with_its_figures() -> None:
    text = guests.memory_shortage(GIB, GIB, 10 * GIB)
    assert text.startswith("1.00 GiB of memory are available, one more guest may need 1.00 GiB")


@pytest.fixture
def labs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labs that exist, made and removed without a machine; the fourth fails."""
    here: list[str] = []

    async def create(lab: str, platform: str, memory_bytes: int) -> Any:
        if len(here) == 3:
            raise RunFailed("It ended.", "")
        here.append(lab)

    async def remove(lab: str) -> None:
        here.remove(lab)

    monkeypatch.setattr(guests, "create", create)
    monkeypatch.setattr(guests, "remove", remove)
    return here


def test_guests_grow_until_one_fails_and_all_are_removed(labs: list[str]) -> None:
    group = guests.GuestGroup("pfx-", "uml", GIB, lambda: (100 * GIB, 100 * GIB))
    asyncio.run(group.grow(2))
    assert labs == ["pfx-0", "pfx-1"]
    with pytest.raises(NoFurtherGuest, match="guest 4 did not start: It ended") as caught:
        asyncio.run(group.grow(4))
    assert caught.value.possible == 3
    asyncio.run(group.end())
    assert labs == []


def test_memory_bounds_guests_with_a_kernel(labs: list[str]) -> None:
    def free() -> tuple[int, int]:
        return 2 * GIB - len(labs) * (GIB // 2), GIB

    group = guests.GuestGroup("pfx-", "uml", GIB, free)
    with pytest.raises(NoFurtherGuest, match=r"one more guest may need 1\.00 GiB") as caught:
        asyncio.run(group.grow(3))
    assert caught.value.possible == 2
    asyncio.run(group.end())
    # A guest on the machine's own kernel takes little before it is loaded.
    asyncio.run(guests.GuestGroup("pfx-", "container", GIB, free).grow(3))
    assert len(labs) == 3
