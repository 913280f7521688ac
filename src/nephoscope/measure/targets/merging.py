"""The kernel's merging of equal pages (KSM), a setting of the whole machine that a load changes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nephoscope.core import leases

FOLDER = Path("/sys/kernel/mm/ksm")
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SETTINGS = ("pages_to_scan", "sleep_millisecs")
_OFF, _ON, _SEPARATE = "0", "1", "2"


def lease() -> None:
    """Notes the settings before the load changes them; nothing where it will be refused."""
    with contextlib.suppress(OSError):
        if _read("run") != _ON:
            settings = {name: _read(name) for name in _SETTINGS}
            leases.lease(leases.MERGING, {"boot": _BOOT.read_text().strip(), "settings": settings})


def restore(place: Mapping[str, Any], patience_s: float) -> bool:
    """Switches off what a killed load left on, and restores its settings; returns whether it did.

    patience_s: time in which the load may do so by itself. Raises OSError where the kernel refuses.
    """
    settings = place.get("settings")
    if not isinstance(settings, dict) or place.get("boot") != _BOOT.read_text().strip():
        return False  # Nothing of it survives a restart of the machine.
    until_s = time.monotonic() + patience_s
    while _is_on() and time.monotonic() < until_s:
        time.sleep(0.05)
    if not _is_on() or leases.is_leased(leases.MERGING):
        return False
    (FOLDER / "run").write_text(_SEPARATE)
    (FOLDER / "run").write_text(_OFF)
    for name in _SETTINGS:
        if str(settings.get(name, "")).isdecimal():
            (FOLDER / name).write_text(str(settings[name]))
    return True


def _is_on() -> bool:
    try:
        return _read("run") == _ON
    except OSError:
        return False


def _read(name: str) -> str:
    return (FOLDER / name).read_text().strip()
