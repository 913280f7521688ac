"""SIGKILL at drawn moments: after the next command nothing is left, and no stored trial is lost.

`NEPHOSCOPE_KILLS=300` sets the number of kills of the slow test, `NEPHOSCOPE_KILLS_QEMU=1` adds
guests of QEMU, `NEPHOSCOPE_KILLS_RECORD=FILE` writes the counts by kind after each kill.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.cli.test_examples import EXAMPLES, scratch
from tests.hardware import Feature, needs

from nephoscope.core import leases
from nephoscope.measure.lab import state
from nephoscope.measure.lab.platforms import PLATFORMS
from nephoscope.measure.provisioning import UP

from .conftest import PROGRAM
from .killing import PATIENCE_S, Cage

__all__ = ("scratch",)

KILLS = int(os.environ.get("NEPHOSCOPE_KILLS", "60"))

ELSEWHERE = ("cloud", "fleet --target", "merge s3", "survey --target", "engine check", "study run")
"""Beginnings of examples that need a cloud, other machines or a cluster."""

LAB = "version: 1\nname: {name}\nhosts:\n  a: {{platform: {platform}}}\n  b:\n"
RUN = """
version: 1
name: killed
repeat: {{min: 50, max: 50}}
benchmarks: [{{benchmark: cpu.gaps, params: {{duration_ns: 200ms}}}}, {{benchmark: disk.files}}]
targets: [{{name: a, kind: lab}}]
lab: {{version: 1, name: {name}, hosts: {{a: {{platform: {platform}}}}}}}
"""

MEASURING = {
    "bench disk": "bench disk.files",
    "bench storage": "bench storage.transfer",
    "bench network": "bench net.throughput",
    "bench command": "bench --shell sh --command 'sleep 300 & sleep 0.1'",
    "database": "bench db.pgbench",
    "web server": "bench wrk",
    "dashboard": "serve --port 0",
    "watch": "watch plan.yaml --every 5s",
    "observer": "sla watch web=http://127.0.0.1:9/ -o watched.csv --interval 1s",
    "advise": "advise --command 'sleep 20' --time 10s",
    "engine": "history hash_bytes_per_s --engine local:2",
    "isolate": "isolate cpu",
    "balance": "balance",
    "elastic": "elastic",
    "lab check": "lab check",
}
LABS = {
    f"{words}, {platform}": f"{words} {words.split()[0]}-{platform}.yaml"
    for platform in PLATFORMS
    for words in ("lab up", "run")
}
PROGRAMS = {"database": "initdb", "web server": "nginx", "balance": "haproxy"}
NEED_ROOT = ("isolate", "balance", "elastic", "lab check", *LABS)


def kinds() -> dict[str, str]:
    """Kind of command -> a command line: the first example of each command, and what measures."""
    lines: dict[str, str] = {}
    for name, line in EXAMPLES:
        words = line.partition(" ")[2]
        if name and not words.startswith((*ELSEWHERE, "lab", "serve", "watch", "sla watch")):
            lines.setdefault(name, words)
    chosen = {**MEASURING, **LABS, **lines}
    root = os.geteuid() == 0
    return {
        kind: words
        for kind, words in chosen.items()
        if (root or kind not in NEED_ROOT)
        and (kind not in LABS or has_platform(kind.split()[-1]))
        and (kind not in PROGRAMS or shutil.which(PROGRAMS[kind]) or kind == "database")
    }


def has_platform(name: str) -> bool:
    """Whether hosts of a platform can be made here, and are wanted."""
    wanted = name != "qemu" or "NEPHOSCOPE_KILLS_QEMU" in os.environ
    return wanted and PLATFORMS[name].lacking() is None


def test_a_killed_command_leaves_nothing_once_the_next_one_has_run(
    tmp_path: Path, probe: Path
) -> None:
    cage = Cage(tmp_path)
    with subprocess.Popen(
        [*PROGRAM, "bench", "disk.files"], env=cage.environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        until = time.monotonic() + PATIENCE_S
        while not leases.scratch_folders(cage.scratch):
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.01)
        # The command and its probe at one moment, as in a container that runs out of memory.
        for pid in cage.processes():
            os.kill(pid, signal.SIGKILL)
    assert leases.scratch_folders(cage.scratch)
    done = cage.run("verify")
    assert "A scratch folder in" in done.stderr
    assert "was left by a process that was killed; it is removed." in done.stderr
    assert list(cage.left()) == []
    assert "removed" not in cage.run("verify").stderr


@pytest.mark.slow
@needs(Feature.ROOT, os.geteuid() == 0)
def test_nothing_is_left_and_nothing_lost_after_kills_of_every_kind(
    scratch: Path, tmp_path: Path, probe: Path
) -> None:
    shutil.copytree(scratch, tmp_path, dirs_exist_ok=True)
    lab = f"kill{os.getpid()}"
    for platform in PLATFORMS:
        for kind, text in (("run", RUN), ("lab", LAB)):
            document = text.format(name=lab, platform=platform)
            (tmp_path / f"{kind}-{platform}.yaml").write_text(document)
    cage, draw = Cage(tmp_path, lab), random.Random(40)
    lines = kinds()
    killed: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    wrong: list[str] = []
    record = os.environ.get("NEPHOSCOPE_KILLS_RECORD")
    for kind in itertools.islice(itertools.cycle(lines), 4 * KILLS):
        if killed.total() >= KILLS:
            break
        kill = cage.kill(lines[kind], draw)
        (killed if kill.was_killed else ended)[kind] += 1
        problems = kill.problems
        # It was made by hand, and stays, also if the kill came after it was up.
        if kind.startswith("lab up") and (state.read(lab) or {}).get("phase") == UP:
            problems = tuple(each for each in problems if each != f"lab {lab}")
            if cage.run(f"lab exec {lab}/a -- true").returncode != 0:
                problems += ("a lab that is up has no host that answers",)
            cage.run(f"lab down {lab}")
        if problems:
            wrong.append(f"{kind} ({kill.by}, {kill.moment_s:.2f} s): {problems}")
            sys.stderr.write(f"{wrong[-1]}\n")
        if not cage.trials():
            wrong.append(f"{kind}: the store is empty")
            shutil.copytree(scratch / "store", tmp_path / "store", dirs_exist_ok=True)
        if record:
            counts = {"kills": killed.total(), "killed": killed, "ended_before": ended}
            Path(record).write_text(json.dumps({**counts, "problems": wrong}, indent=1) + "\n")
    sys.stderr.write(f"killed {killed.total()}: {dict(killed)}\nended before: {dict(ended)}\n")
    assert not wrong, "\n".join(wrong)
    assert killed.total() == KILLS
