"""The peers of `simulators.py`: where they are, and how they come there from their registries."""

from __future__ import annotations

import shutil
import subprocess
import sys

from _paired import ROOT

PEERS = ROOT / ".setup" / "peers"
SOURCES = ROOT / "benchmarks" / "peers"


def python() -> list[str]:
    """The interpreter that has SimPy and salabim."""
    return [str(PEERS / "python" / "bin" / "python")]


def simpy() -> list[str]:
    """SimPy's queue."""
    return [*python(), str(SOURCES / "simpy_queue.py")]


def salabim() -> list[str]:
    """Salabim's queue."""
    return [*python(), str(SOURCES / "salabim_queue.py")]


def nexosim() -> list[str]:
    """NeXosim's queue."""
    return [str(PEERS / "nexosim" / "release" / "nexosim-queue")]


def cloudsim() -> list[str]:
    """CloudSim Plus's machines."""
    places = f"{PEERS / 'cloudsim' / 'classes'}:{PEERS / 'cloudsim' / 'lib'}/*"
    return ["java", "-cp", places, "CloudSimPlusQueue"]


def install() -> None:
    """Fetches the peers by their registries' own clients; what fails is told, the others go on."""
    folder = PEERS / "cloudsim"
    lib, classes = folder / "lib", folder / "classes"
    pip = [*python(), "-m", "pip", "install", "-q", "simpy==4.1.2", "salabim==26.0.9", "greenlet"]
    steps: list[tuple[str, list[list[str]]]] = [
        ("SimPy and salabim", [[sys.executable, "-m", "venv", str(PEERS / "python")], pip]),
        (
            "NeXosim",
            [["cargo", "build", "--release", "-j1", "--target-dir", str(PEERS / "nexosim"),
              "--manifest-path", str(SOURCES / "nexosim" / "Cargo.toml")]],
        ),
        (
            "CloudSim Plus",
            [
                ["mvn", "-q", "-B", "-f", str(SOURCES / "pom.xml"), "dependency:copy-dependencies",
                 f"-DoutputDirectory={lib}"],
                ["javac", "-cp", f"{lib}/*", "-d", str(classes),
                 str(SOURCES / "CloudSimPlusQueue.java")],
            ],
        ),
    ]  # fmt: skip
    PEERS.mkdir(parents=True, exist_ok=True)
    for name, commands in steps:
        for command in commands:
            if shutil.which(command[0]) is None:
                print(f"{name}: {command[0]} is missing; left out.", file=sys.stderr)
                break
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                said = (done.stderr or done.stdout).strip().splitlines()
                print(f"{name}: {said[-1] if said else 'failed'}; left out.", file=sys.stderr)
                break
