"""The removal of labs after a kill, without a machine."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from nephoscope.features.platforms import cleanup, guests


def test_labs_are_removed_once_the_measurement_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    here, tries = ["pf1-0", "pf1-1"], list[str]()

    async def remove_all(prefix: str) -> None:
        tries.append(prefix)
        here.pop()  # the other one is still being made

    monkeypatch.setattr(guests, "remains", lambda prefix: list(here))
    monkeypatch.setattr(guests, "remove_all", remove_all)
    monkeypatch.setattr(cleanup, "_STEP_S", 0.0)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO()))
    cleanup.main("pf1-")
    assert here == []
    assert tries == ["pf1-", "pf1-"]


def test_a_lab_that_stays_does_not_hold_the_process_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def remove_all(prefix: str) -> None:
        pass

    monkeypatch.setattr(guests, "remains", lambda prefix: ["pf1-0"])
    monkeypatch.setattr(guests, "remove_all", remove_all)
    monkeypatch.setattr(cleanup, "TIMEOUT_S", 0.0)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO()))
    cleanup.main("pf1-")
