"""Build hook: puts the static probe and the contracts inside the wheel."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProbeBuildHook(BuildHookInterface):
    """Runs the same set-up as `make`, then includes what it built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Includes `_probe/<arch>-linux/nephoscope-probe` and `_contracts/*.json`."""
        root = Path(self.root)
        machine = platform.machine()
        probe = root / "src" / "nephoscope" / "_probe" / f"{machine}-linux" / "nephoscope-probe"
        if not probe.is_file():
            subprocess.run([str(root / "tools" / "setup.sh"), "probe-here"], check=True)
        included = build_data["force_include"]
        for built in sorted(probe.parents[1].glob("*/nephoscope-probe")):
            included[str(built)] = f"nephoscope/_probe/{built.parent.name}/nephoscope-probe"
        for contract in sorted((root / "contracts").glob("*.json")):
            included[str(contract)] = f"nephoscope/_contracts/{contract.name}"
        # The probe is static: no C library of the machine matters, only its architecture does.
        build_data["tag"] = f"py3-none-manylinux_2_17_{machine}.manylinux2014_{machine}"
        build_data["pure_python"] = False
