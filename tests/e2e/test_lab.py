"""The lab as its users have it: up, list, exec, down; after a kill; as nobody in particular."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import stat
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import schemas
from tests.attempts import attempt
from tests.e2e.conftest import PROGRAM, Run, mounted
from tests.profiles import by_profile
from tests.tools import needs

from nephoscope import command_line
from nephoscope.cli.kit.command import records
from nephoscope.cli.kit.documents import commands_schema
from nephoscope.measure.lab import names, state
from nephoscope.measure.lab.limits import cgroups
from nephoscope.measure.lab.provisioner import LABS

pytestmark = [pytest.mark.usefixtures("root_only"), needs("ip", "tc")]

LIMIT_S = 5.0


@pytest.fixture
def lab_name(nephoscope: Run) -> Iterator[str]:
    """A name of its own; whatever carries it is gone after the test."""
    name = f"t{uuid.uuid4().hex[:8]}"
    yield name
    if LABS.remains(name):
        nephoscope("lab", "down", name)


@pytest.fixture
def office(lab_name: str, tmp_path: Path) -> Path:
    """Ten hosts on one switch, one of them behind a slow link."""
    hosts = "".join(f"  h{number}:\n" for number in range(10))
    path = tmp_path / "office.yaml"
    path.write_text(
        f"version: 1\nname: {lab_name}\nhosts:\n{hosts}"
        "links:\n  wan: {between: [h0, lan], rate: 47Mbit/s, delay: 5ms}\n"
    )
    return path


def left(name: str) -> list[str]:
    """Everything of a lab that is still there, of every kind."""
    found = [str(path) for path in LABS.remains(name)]
    mounts = Path("/proc/self/mountinfo").read_text()
    found += [line for line in mounts.splitlines() if f"{names.PREFIX}{name}." in line]
    found += [line for line in mounts.splitlines() if f"{names.RUN}/{name}/" in line]
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                words = Path(entry.path, "cmdline").read_bytes().replace(b"\0", b" ").decode()
                group = Path(entry.path, "cgroup").read_text()
                # One that has ended and waits for init to take note of it is gone.
                if Path(entry.path, "stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX":
                    continue
            except OSError:
                continue
            if f"{names.PREFIX}{name}." in words or f"/nephoscope/{name}/" in group:
                found.append(f"process {entry.name}: {words}")
    links = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True)
    found += [line for line in links.stdout.splitlines() if line.startswith(names.PREFIX)]
    return found


@pytest.mark.alone
def test_ten_hosts_are_up_and_down_in_five_seconds(
    nephoscope: Run, office: Path, lab_name: str
) -> None:
    def measure() -> tuple[str, bool]:
        began = time.monotonic()
        done = nephoscope("lab", "up", office, "--json", process=True)
        up_s = time.monotonic() - began
        assert done.code == 0, done.err
        assert len(done.json()["hosts"]) == 10
        assert done.json()["links"][0]["rate"] == "HTB"
        began = time.monotonic()
        done = nephoscope("lab", "down", office, "--json", process=True)
        down_s = time.monotonic() - began
        assert done.code == 0, done.err
        assert done.json()["removed"][0]["namespaces"] == 11
        assert left(lab_name) == []
        return f"up {up_s:.2f} s, down {down_s:.2f} s", max(up_s, down_s) < LIMIT_S

    attempt("ten hosts", measure)


def test_a_program_in_a_host_keeps_its_streams_and_exit_code(
    nephoscope: Run, office: Path, lab_name: str
) -> None:
    assert nephoscope("lab", "up", office).code == 0
    done = nephoscope("lab", "exec", f"{lab_name}/h0", "--", "sh", "-c", "echo in; exit 42")
    assert (done.code, done.out) == (42, "in\n")
    done = nephoscope("lab", "exec", f"{lab_name}/h3", "--", "ip", "-br", "-4", "addr")
    assert "10.77.0.4/16" in done.out
    done = nephoscope("lab", "exec", f"{lab_name}/h0", "--", "getent", "hosts", "h3")
    assert done.out.split() == ["10.77.0.4", "h3"]
    assert "Up now" not in nephoscope("lab", "exec", f"{lab_name}/h99", "--", "true").sentence
    done = nephoscope("lab", "exec", f"{lab_name}/h99", "--", "true")
    assert done.code == 2
    assert "has no host named 'h99'" in done.sentence
    listed = nephoscope("lab", "list")
    assert f"{lab_name}: up" in listed.out
    assert "47.0 Mbit/s" in listed.out
    found = nephoscope("lab", "list", "--json").json()["labs"]
    mine = next(one for one in found if one["name"] == lab_name)
    assert mine["state"] == "up"
    assert [host["address"] for host in mine["hosts"]][:2] == ["10.77.0.1", "10.77.0.2"]
    again = nephoscope("lab", "up", office)
    assert again.code == 2
    assert "is up already" in again.sentence
    assert nephoscope("lab", "down", lab_name).code == 0
    assert left(lab_name) == []
    gone = nephoscope("lab", "down", lab_name)
    assert gone.code == 2
    assert "There is no lab named" in gone.sentence
    gone = nephoscope("lab", "exec", f"{lab_name}/h0", "--", "true")
    assert gone.code == 2
    assert f"No lab named {lab_name} is up" in gone.sentence


def test_a_kill_at_any_moment_leaves_nothing_behind_once_it_is_down(
    nephoscope: Run, office: Path, lab_name: str
) -> None:
    other = Path(f"/run/netns/nephx-{lab_name}")
    group = cgroups.layout().of("pids").root / other.name
    subprocess.run(["ip", "netns", "add", other.name], check=True)
    group.mkdir(exist_ok=True)
    # How long the making takes, without the interpreter's own start.
    making_s = nephoscope("lab", "up", office, "--json").json()["elapsed_s"]
    nephoscope("lab", "down", lab_name)
    draw = random.Random(20261121)
    kills, busy = by_profile(quick=4, whole=10), 0
    try:
        for number in range(kills):
            child = subprocess.Popen(
                [*PROGRAM, "lab", "up", str(office)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            until = time.monotonic() + 120
            while not names.directory(lab_name).exists():
                assert time.monotonic() < until
                time.sleep(0.0005)
            moment_s = making_s * draw.uniform(0.0, 1.0)
            time.sleep(moment_s)
            child.send_signal(signal.SIGKILL)
            child.wait()
            was = len(left(lab_name))
            busy += was > 0
            done = nephoscope("lab", "down", lab_name)
            sys.stderr.write(
                f"{number + 1}: killed after {moment_s:.3f} s, {was} things left, {done.out}"
            )
            # Any other command of this machine removes what a killed one left, too.
            assert done.code == 0 or f"There is no lab named {lab_name}" in done.err, done.err
            assert left(lab_name) == []
        assert other.exists()
        assert group.is_dir()
    finally:
        subprocess.run(["ip", "netns", "delete", other.name], check=True)
        group.rmdir()
    assert busy == kills


def test_the_lab_of_a_killed_run_goes_with_the_next_command(
    nephoscope: Run, lab_name: str, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "version: 1\nname: killed\nrepeat: {min: 50, max: 50}\n"
        "benchmarks: [{benchmark: cpu.gaps, params: {duration_ns: 1s}}]\n"
        "targets: [{name: h, kind: lab}]\n"
        f"lab: {{version: 1, name: {lab_name}, hosts: {{h: {{}}}}}}\n"
    )
    with subprocess.Popen(
        [*PROGRAM, "run", str(plan)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as child:
        until = time.monotonic() + 120
        while (state.read(lab_name) or {}).get("phase") != "up":
            assert time.monotonic() < until
            time.sleep(0.01)
        # It belongs to somebody: no command removes it.
        assert "killed" not in nephoscope("runs").err
        assert left(lab_name)
        child.kill()
        child.wait()
    done = nephoscope("runs")
    assert f"Lab {lab_name} was left by a process that was killed; it is removed." in done.err
    assert left(lab_name) == []
    assert "removed" not in nephoscope("runs").err


def test_an_interrupted_up_cleans_up_by_itself(
    nephoscope: Run, office: Path, lab_name: str
) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        child = subprocess.Popen(
            [*PROGRAM, "lab", "up", str(office)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        until = time.monotonic() + 120
        while not names.namespaces_of(lab_name) and child.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.001)
        child.send_signal(number)
        _, err = child.communicate(timeout=120)
        if child.returncode == 0:  # it was done before the signal came
            nephoscope("lab", "down", lab_name)
        else:
            assert child.returncode == 130, err
            assert "the partly created lab was removed" in err
            assert "Traceback" not in err
        assert left(lab_name) == []


def test_what_is_wrong_is_one_sentence_with_the_right_code(
    nephoscope: Run, tmp_path: Path, lab_name: str
) -> None:
    file = tmp_path / "lab.yaml"
    for text, code, words in (
        (f"name: {lab_name}\nhosts: {{a: }}\nlink: {{}}\n", 2, "lab.yaml:3:1: unknown key 'link'"),
        (f"name: {lab_name}\nhosts: {{a: }}\nnetwork: 127.0.0.0/16\n", 2, "uses on lo"),
        (f"name: {lab_name}\nhosts: {{a: {{cpu: {{cpus: [4000]}}}}}}\n", 2, "asks for CPU 4000"),
        ("hosts: [", 2, "no valid YAML"),
    ):
        file.write_text(text)
        done = nephoscope("lab", "up", file)
        assert done.code == code, done.err
        assert words in done.sentence
        assert left(lab_name) == []
    done = nephoscope("lab", "up", tmp_path / "none.yaml")
    assert (done.code, "there is no such file" in done.sentence) == (2, True)
    assert nephoscope("lab", "down").code == 2
    done = nephoscope("lab", "exec", "office", "--", "true")
    assert (done.code, "LAB/HOST" in done.sentence) == (2, True)


def test_a_rate_beyond_the_box_is_refused_by_check_before_the_run(
    nephoscope: Run, tmp_path: Path, lab_name: str
) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(
        f"name: {lab_name}\nhosts: {{a: , b: }}\n"
        "links: {wan: {between: [a, lan], rate: 390Gbit/s}}\n"
    )
    done = nephoscope("lab", "check", file)
    assert done.code == 2, done.err
    assert "390 Gbit/s cannot hold here: this box carries" in done.sentence
    done = nephoscope("lab", "up", file)
    assert done.code == 0
    assert "warning: link wan asks for 390 Gbit/s" in done.err


def as_nobody() -> tuple[str, ...]:
    return ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")


def test_without_privileges_it_names_what_lacks(nephoscope: Run, office: Path) -> None:
    office.chmod(0o644)
    for parent in office.parents:
        if not (mode := stat.S_IMODE(parent.stat().st_mode)) & stat.S_IXOTH:
            parent.chmod(mode | 0o055)
    program = Path(sys.executable)
    if subprocess.run([*as_nobody(), str(program), "-c", ""], capture_output=True).returncode:
        # The interpreter lies where only root may go: drop the capabilities alone.
        before: tuple[str, ...] = ("setpriv", "--bounding-set", "-all", "--inh-caps", "-all")
    else:
        before = as_nobody()
    done = nephoscope("lab", "up", office, before=before)
    assert done.code == 4, done.err
    assert "CAP_SYS_ADMIN" in done.sentence
    assert "CAP_NET_ADMIN" in done.sentence
    assert re.search(r"sudo /\S+ .*lab up /", done.sentence), "the full path, and the same words"


def test_a_program_that_is_not_installed_is_named(nephoscope: Run, office: Path) -> None:
    done = nephoscope(
        "lab", "up", office, before=mounted("mount --bind /dev/null $(command -v tc)")
    )
    assert done.code == 4, done.err
    assert "needs tc" in done.sentence
    assert "apt-get install iproute2" in done.sentence


def test_every_command_prints_json_alone(nephoscope: Run, office: Path, lab_name: str) -> None:
    schema = commands_schema()
    for words in (("up", str(office)), ("list",), ("down", lab_name)):
        done = nephoscope("lab", *words, "--json")
        assert done.code == 0, done.err
        name = records(command_line.program)[f"lab {words[0]}"].prints[""].name
        schemas.validate(json.loads(done.out), {**schema, "$ref": f"#/$defs/{name}"})
