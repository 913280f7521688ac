"""Attacks that once crashed, hung or took gigabytes: each is refused in one sentence, or confined.

All command lines run in one process after another, which measures the time of each and the peak of
its memory; `HELD_ELSEWHERE` names the tests of the attacks that need a lab, a server or a store.
"""

from __future__ import annotations

import json
import os
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import PROGRAM, run_inside

from nephoscope.core import programs

ROOT = Path(__file__).parents[2]
SECONDS, MEMORY_BYTES = 2.0, 300 << 20
PLAN = "name: x\nbenchmarks: [{benchmark: 'null'}]\n"
SSH = "name: x\ntargets: [{name: a, kind: ssh, @}]\nbenchmarks: [{benchmark: 'null'}]\n"
GEO = ["simulate", "geo", "cloudanalyst-default", "--set"]
SAMPLE = '{"test": "t", "metric": "m", "value": 1, "unit": "s", "timestamp": @, "labels": ""}\n'


def bomb(inner: str) -> str:
    """Ten lists, or mappings, each with ten aliases of the one before."""
    lines = ["a0: &a0 {k: 1}"]
    for level in range(1, 10):
        aliases = ",".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} " + inner.replace("@", aliases))
    return "\n".join(lines) + "\n"


FILES: Mapping[str, str] = {
    "shell.yaml": SSH.replace("@", "address: 'a; touch pwned'"),
    "option.yaml": SSH.replace("@", "address: '-oProxyCommand=touch pwned'"),
    "user.yaml": SSH.replace("@", "address: a, user: '-oProxyCommand=x'"),
    "jump.yaml": SSH.replace("@", "address: a, jump: ['b;touch pwned']"),
    "escape.yaml": "name: x\nbenchmarks: [{benchmark: '\x1b[2J\x1b]0;title\x07'}]\n",
    "escape-2.yaml": 'name: x\nbenchmarks: [{benchmark: "\\e[2J\\e]0;title\\a"}]\n',
    "aliases.yaml": PLAN + bomb("[@]"),
    "merges.yaml": PLAN + bomb("{<<: [@]}"),
    "tag.yaml": PLAN + "budget: !!int ''\n",
    "surrogate.yaml": PLAN + 'question: "\\ud800"\n',
    "deep.yaml": PLAN + "question: " + "[" * 5000,
    "loop.yaml": PLAN + "include: [loop]\n",
    "fifo.yaml": PLAN + "include: [fifo]\n",
    "zero.yaml": PLAN + "include: [/dev/zero]\n",
    "shadow.yaml": PLAN + "include: [shadow]\n",
    "shadow": "root:s3cret:20228:0:99999:7:::\n",
    "scenario.yaml": "version: 1\nname: x\npolicy: linux\nprocessors: 1\n" + bomb("{<<: [@]}"),
    "late.json": SAMPLE.replace("@", "1e300"),
    "deep.json": "[" * 100_000,
}
ATTACKS: Mapping[str, tuple[list[str], str]] = {
    "a shell command as an address": (["run", "shell.yaml"], "is no name for ssh"),
    "an option as an address": (["run", "option.yaml"], "is no name for ssh"),
    "an option as a user": (["run", "user.yaml"], "is no name for ssh"),
    "a shell command as a jump host": (["run", "jump.yaml"], "is no jump host"),
    "control characters in a plan": (["run", "escape.yaml"], "escape.yaml"),
    "escape sequences in a plan": (["run", "escape-2.yaml"], "There is no benchmark"),
    "escape sequences as a file": (["compare", "\x1b[2J\x1b]0;t\x07", "y"], "There is no"),
    "2^31 virtual CPUs": (
        ["simulate", "scheduler", "linux-quota-150", "--set", f"vms.guest.vcpus={2**31}"],
        "2147483648 virtual CPUs",
    ),
    "nearly no requests": (
        [*GEO, "user_bases.UB1.requests_per_user_h=1e-300"],
        "requests_per_user_h",
    ),
    "2^64 bytes of a request": ([*GEO, f"user_bases.UB1.request_bytes={2**64 - 1}"], "bytes"),
    "1.7e308 hours": ([*GEO, "duration_h=1.7e308"], "duration_h"),
    "aliases that expand": (["run", "aliases.yaml"], "250,000 values"),
    "merge keys that expand": (["run", "merges.yaml"], "250,000 values"),
    "a machine whose merge keys expand": (
        ["simulate", "scheduler", "scenario.yaml"],
        "250,000 values",
    ),
    "an infinite budget": (["survey", "--budget", "1e308"], "--budget"),
    "a tag with empty text": (["run", "tag.yaml"], "does not fit its tag"),
    "half a surrogate pair": (["run", "surrogate.yaml"], "invalid Unicode"),
    "a list without end": (["run", "deep.yaml"], "deeper than 50 levels"),
    "a timestamp out of range": (["import", "late.json"], "no time in seconds"),
    "deep JSON": (["import", "deep.json"], "nested too deeply"),
    "a loop of links": (["run", "loop.yaml"], "Too many levels"),
    "a named pipe as an include": (["run", "fifo.yaml"], "no regular file"),
    "a device as an include": (["run", "zero.yaml"], "no regular file"),
    "a device to import": (["import", "/dev/zero"], "no regular file"),
    "a device as a census": (["census", "--import", "/dev/zero"], "no regular file"),
    "an argument that is no text": (["show", "\udcff"], "no UTF-8 text"),
    "a file that is no plan as an include": (["run", "shadow.yaml"], "shadow"),
}
HELD_ELSEWHERE: Mapping[str, str] = {
    "hostfs of a User-Mode Linux guest": "test_a_guest_reaches_no_file_of_this_machine",
    "containers that manage the machine": "test_a_container_cannot_manage_the_machine",
    "a ProxyCommand that uses the address": (
        "test_an_alias_of_the_configuration_stands_for_a_plain_name"
    ),
    "silent and slow connections to a far side": "silent_and_slow_strangers_delay_nobody",
    "a task out of the bounds of its parameters": "tasks_out_of_the_bounds_are_refused",
    "escape sequences in stored runs": "test_a_hostile_run_is_printed_harmlessly",
    "one flipped bit in a stored file": "test_no_change_of_a_file_is_silent",
    "mutated manifests": "test_a_manifest_without_digest_is_read_or_refused_in_one_sentence",
    "mutated Parquet files": "test_a_trial_file_without_digest_is_held_to_its_types",
    "CSV cells that begin with =": "test_no_cell_of_csv_is_a_formula",
    "a store that others can read": "test_a_store_is_for_its_owner_alone",
    "what is read from outside, mutated": "test_mutated_input_is_read_or_refused_in_a_sentence",
    "a mail folder that another program changed": "a_file_that_somebody_else_changed_is_reported",
}


def main() -> None:
    """Runs the command lines on stdin as JSON in this process; prints what became of each."""
    ended = []
    for words in json.load(sys.stdin):
        began_s = time.process_time()
        done = run_inside(words)
        spent_s = time.process_time() - began_s
        ended.append({"code": done.code, "out": done.out, "err": done.err, "seconds": spent_s})
    own = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    started = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    kib = max(int(own[1]) if own else 0, started)
    json.dump({"ended": ended, "memory_bytes": kib << 10}, sys.stdout)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """How each attack ended, and the peak of memory over all of them."""
    folder = tmp_path_factory.mktemp("hostile")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    os.mkfifo(folder / "fifo")
    (folder / "loop").symlink_to(folder / "loop")
    code = "from tests.e2e.test_hostile_input import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps([words for words, _ in ATTACKS.values()]),
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NEPHOSCOPE_STORE": str(folder / "store")},
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert not (folder / "pwned").exists()
    return {**dict(zip(ATTACKS, told["ended"], strict=True)), "memory": told["memory_bytes"]}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused_in_one_sentence_at_once(
    attack: str, ended: Mapping[str, Any]
) -> None:
    done, (_, expected) = ended[attack], ATTACKS[attack]
    assert done["code"] in (2, 3), done
    assert done["out"] == ""
    sentences = [line for line in done["err"].splitlines() if line.startswith("nephoscope: ")]
    assert len(sentences) == len(done["err"].splitlines()) >= 1
    assert expected in done["err"]
    for part in ("Traceback", "defect", "\x1b", "\x07", "s3cret"):
        assert part not in done["err"]
    assert done["seconds"] < SECONDS


def test_no_attack_takes_much_memory(ended: Mapping[str, Any]) -> None:
    assert ended["memory"] < MEMORY_BYTES


@pytest.mark.parametrize("held", HELD_ELSEWHERE.values())
def test_the_other_attacks_have_tests_of_their_own(held: str, sources: str) -> None:
    assert re.search(rf"\b(def|fn) {held}\(", sources)


@pytest.fixture(scope="module")
def sources() -> str:
    """All tests."""
    paths = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "crates").rglob("*.rs")]
    return "\n".join(path.read_text() for path in paths)


@pytest.mark.parametrize(("kib", "code"), [(300_000, 3), (700_000, 0)])
def test_a_limit_on_memory_ends_in_a_report_or_a_sentence(
    kib: int, code: int, tmp_path: Path
) -> None:
    done = _limited_to(kib, tmp_path)
    assert done.returncode == code, done.stderr
    assert ("may use no more memory" in done.stderr) == bool(code)
    assert "Traceback" not in done.stderr
    assert "OpenBLAS" not in done.stderr
    assert [path.name for path in tmp_path.rglob("report.html")] == ["report.html"] * (not code)
    if code:
        advised = re.search(r"`ulimit -v (\d+)`", done.stderr)
        assert advised is not None
        again = _limited_to(int(advised[1]), tmp_path)
        assert again.returncode == 0, again.stderr


def _limited_to(kib: int, store: Path) -> subprocess.CompletedProcess[str]:
    words = [*PROGRAM, "bench", "null", "--repetitions", "10", "--store", str(store)]
    limited = ["sh", "-c", f'ulimit -v {kib}; exec "$@"', "sh", *words]
    return subprocess.run(limited, capture_output=True, text=True, timeout=120)


TOKEN = b"a-token-of-the-test-0123456789\n"
TASK: Mapping[str, Any] = {
    "tcp": True,
    "up": True,
    "down": False,
    "streams": 1,
    "send_bytes": 4096,
    "warmup_ns": 0,
    "duration_ns": 1_000_000,
    "stream_bytes": 0,
    "block_bytes": 0,
    "receive_buffer_bytes": 0,
    "congestion_control": [0] * 16,
    "zero_copy": False,
    "segmentation_offload": False,
    "number": 0,
    "more_follow": False,
    "interval_ns": 100_000_000,
    "packet_bytes": 1400,
    "per_s": 0.0,
    "wait_ns": 0,
    "press": None,
}


@pytest.fixture
def server() -> Iterator[tuple[subprocess.Popen[bytes], tuple[str, int]]]:
    """The far side of net.throughput and its address."""
    words = [str(programs.find_probe()), "serve", "net.throughput", "--token-file", "-"]
    process = subprocess.Popen(
        ["sh", "-c", 'ulimit -v 300000; exec "$@"', "sh", *words, "--deadline", "30"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        process.stdin.write(TOKEN)
        process.stdin.flush()
        ready = json.loads(process.stdout.readline())["ready"]
        yield process, (ready["address"], ready["port"])
        process.kill()


@pytest.mark.parametrize(
    "change",
    [
        {"send_bytes": 0},
        {"send_bytes": 2 << 30},
        {"tcp": False, "packet_bytes": 2**58, "per_s": 1.0},
        {"tcp": False, "per_s": 0.0},
        {"tcp": False, "per_s": -1.0},
        {"tcp": False, "per_s": 1e300},
    ],
)
def test_a_task_out_of_the_bounds_ends_a_server_in_a_sentence(
    change: Mapping[str, Any], server: tuple[subprocess.Popen[bytes], tuple[str, int]]
) -> None:
    process, address = server
    with socket.create_connection(address) as peer:
        peer.sendall(TOKEN + json.dumps({**TASK, **change}).encode() + b"\n")
        out, err = process.communicate(timeout=60)
    assert process.returncode in (2, 3)
    assert b"out of the bounds" in out
    assert b"panicked" not in err


def test_a_stream_from_another_address_than_its_peers_is_hung_up_on(
    server: tuple[subprocess.Popen[bytes], tuple[str, int]],
) -> None:
    _, address = server
    with socket.create_connection(address, 60) as peer:
        peer.sendall(TOKEN + json.dumps(TASK).encode() + b"\n")
        assert b"udp_port" in peer.recv(100)
        with socket.create_connection(address, 60, ("127.0.0.2", 0)) as stranger:
            assert stranger.recv(1) == b""
        with socket.create_connection(address, 60) as stream:
            stream.sendall(TOKEN + b'"up"\n')
            assert b"accepted" in stream.recv(100)


def test_a_named_pipe_as_a_token_file_does_not_block_the_probe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    words = [str(programs.find_probe()), "serve", "null", "--token-file", str(tmp_path / "fifo")]
    done = subprocess.run(words, capture_output=True, timeout=60)
    assert done.returncode == 2
    assert b"panicked" not in done.stderr
    undecodable = [os.fsencode(words[0]), b"run", b"\xff"]
    done = subprocess.run(undecodable, capture_output=True, timeout=60)
    assert done.returncode == 2
    assert b"panicked" not in done.stderr
