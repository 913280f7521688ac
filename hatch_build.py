"""Build hook: puts the static programs, their notices, a list of what others wrote (SBOM) and the
contracts inside the wheel."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProbeBuildHook(BuildHookInterface):
    """Runs the same set-up as `make`, then includes what it built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Includes `_probe/` (programs, licence notices), `_contracts/`, `_studies/`."""
        root = Path(self.root)
        machine = platform.machine()
        folder = root / "src" / "nephoscope" / "_probe"
        programs = ("nephoscope-probe", "nephoscope-lab", "nephoscope-sim")
        if not all((folder / f"{machine}-linux" / name).is_file() for name in programs):
            subprocess.run([str(root / "tools" / "setup.sh"), "probe-here"], check=True)
        subprocess.run([str(root / "tools" / "setup.sh"), "notices"], check=True)
        components = [str(root / "tools" / "sbom.py"), str(folder / "nephoscope.cdx.json")]
        subprocess.run([sys.executable, *components], check=True)
        generate = [sys.executable, str(root / "tools" / "generate.py"), "--built"]
        subprocess.run(generate, check=True)
        included = build_data["force_include"]
        included[str(folder / "NOTICES.txt")] = "nephoscope/_probe/NOTICES.txt"
        # The last one only where it was asked for: `make storage`.
        for name in (*programs, "nephoscope-storage"):
            for built in sorted(folder.glob(f"*/{name}")):
                included[str(built)] = f"nephoscope/_probe/{built.parent.name}/{built.name}"
        for contract in sorted((root / "src" / "nephoscope" / "_contracts").glob("*.json")):
            included[str(contract)] = f"nephoscope/_contracts/{contract.name}"
        for file in sorted((root / "studies").rglob("*")):
            if file.is_file():
                included[str(file)] = f"nephoscope/_studies/{file.relative_to(root / 'studies')}"
        # The programs are static: no C library of the machine matters, only its architecture does.
        build_data["tag"] = f"py3-none-manylinux_2_17_{machine}.manylinux2014_{machine}"
        build_data["pure_python"] = False
