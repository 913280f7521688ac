"""Build hook: puts the static programs, their notices, a list of what others wrote (SBOM) and the
contracts inside the wheel.

NEPHOSCOPE_PROBE_WHEEL names a wheel of the same version whose programs are taken, so that no Rust
is needed. NEPHOSCOPE_ARCH names the architecture of the wheel, this machine's unless given.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAMS = ("nephoscope-probe", "nephoscope-lab", "nephoscope-sim")
NOTICES, COMPONENTS = "NOTICES.txt", "nephoscope.cdx.json"
PACKED = "nephoscope/_probe/"


class ProbeBuildHook(BuildHookInterface):
    """Runs the same set-up as `make`, then includes what it built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Includes `_probe/` (programs, licence notices), `_contracts/`, `_studies/`."""
        root = Path(self.root)
        machine = os.environ.get("NEPHOSCOPE_ARCH") or platform.machine()
        folder = root / "src" / "nephoscope" / "_probe"
        if wheel := os.environ.get("NEPHOSCOPE_PROBE_WHEEL"):
            take_programs(Path(wheel), self.metadata.version, folder)
        else:
            build_programs(root, folder)
        for name in PROGRAMS:
            if not (folder / f"{machine}-linux" / name).is_file():
                raise SystemExit(
                    f"nephoscope: there is no {name} for {machine}. Run `tools/setup.sh "
                    f"probe-{machine}`, then build the wheel again."
                )
        generate = [sys.executable, str(root / "tools" / "generate.py"), "--built"]
        subprocess.run(generate, check=True)
        included = build_data["force_include"]
        included[str(folder / NOTICES)] = f"{PACKED}{NOTICES}"
        # The last one only where it was asked for: `make storage`.
        for name in (*PROGRAMS, "nephoscope-storage"):
            for built in sorted(folder.glob(f"*/{name}")):
                included[str(built)] = f"{PACKED}{built.parent.name}/{built.name}"
        for contract in sorted((root / "src" / "nephoscope" / "_contracts").glob("*.json")):
            included[str(contract)] = f"nephoscope/_contracts/{contract.name}"
        for file in sorted((root / "studies").rglob("*")):
            if file.is_file():
                included[str(file)] = f"nephoscope/_studies/{file.relative_to(root / 'studies')}"
        # The programs are static: no C library of the machine matters, only its architecture does.
        systems = ("manylinux_2_17", "manylinux2014", "musllinux_1_1")
        build_data["tag"] = "py3-none-" + ".".join(f"{system}_{machine}" for system in systems)
        build_data["pure_python"] = False


def build_programs(root: Path, folder: Path) -> None:
    """Builds what is missing for this machine, and the lists of what the programs contain."""
    setup = str(root / "tools" / "setup.sh")
    if not all((folder / f"{platform.machine()}-linux" / name).is_file() for name in PROGRAMS):
        run([setup, "probe-here"])
    run([setup, "notices"])
    run([sys.executable, str(root / "tools" / "sbom.py"), str(folder / COMPONENTS)])


def run(command: list[str]) -> None:
    """Runs a step that explains its failures itself."""
    if subprocess.run(command).returncode:
        raise SystemExit(
            "nephoscope: the static programs cannot be built; the reason is above. Install cargo, "
            "or set NEPHOSCOPE_PROBE_WHEEL to a wheel of this version, whose programs are taken."
        )


def take_programs(wheel: Path, version: str, folder: Path) -> None:
    """Unpacks the programs of a wheel, with their notices and the list of their components."""
    if not zipfile.is_zipfile(wheel):
        raise SystemExit(f"nephoscope: NEPHOSCOPE_PROBE_WHEEL names {wheel}, which is no wheel.")
    if wheel.name.split("-")[:2] != ["nephoscope", version]:
        raise SystemExit(
            f"nephoscope: {wheel.name} is no wheel of nephoscope {version}. Set "
            "NEPHOSCOPE_PROBE_WHEEL to one of this version."
        )
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            if member.filename.startswith(PACKED):
                target = folder / member.filename.removeprefix(PACKED)
            elif member.filename.endswith(f"/sboms/{COMPONENTS}"):
                target = folder / COMPONENTS
            else:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(member))
            target.chmod(member.external_attr >> 16 & 0o777)
